"""The HTTP server: connections, requests, admission and TLS."""
