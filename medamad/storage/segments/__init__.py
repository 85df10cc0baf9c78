"""Segments: immutable columns of views on disk, their counters, and snapshots over them."""
