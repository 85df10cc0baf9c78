"""Recent hits: the write-ahead log, the memtable, and the index that deduplicates beacons."""
