"""HTTP: the server and its limits, the routes of the interface, and static files."""
