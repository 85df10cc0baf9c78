"""The HTTP server: connections and their limits, requests, and TLS."""
