"""HTTP: the site and its limits, the routes of the interface, and the files that are served."""
