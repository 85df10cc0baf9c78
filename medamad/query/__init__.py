"""Queries: what a request for statistics means, and its exact answer over a snapshot.

Everything here is plain synchronous Python over numpy columns; it runs in a thread of its own.
One module stands for each statistic: `summary`, `pages`, `times`, `dimensions`, `properties`.
"""
