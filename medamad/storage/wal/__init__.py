"""Recent hits: the write-ahead log, the memtable, and the beacon index."""
