"""ClickHouse, the engine beyond one machine: its HTTP interface, and our tables there.

Nothing here is imported unless the configuration names a cluster.
"""
