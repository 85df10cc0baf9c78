"""The store: everything that is kept on disk, in LMDB. No other package uses LMDB."""
