"""The LMDB environment: its file, its single writer, checksums and free space."""
