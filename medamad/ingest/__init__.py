"""Ingest: what a hit means, whether it counts, and the queue in front of the store."""
