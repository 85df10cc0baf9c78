"""The store: everything that is kept, in LMDB. Nobody else knows LMDB."""
