"""File formats of tables: CSV, NDJSON and Parquet."""
