"""The LMDB environment: its files, its single writer, transactions and free space."""
