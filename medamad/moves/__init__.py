"""Moving out and in: what a website holds as files of CSV, NDJSON and Parquet, and back.

`tables` says which columns there are, `exporting` reads them out of a website step by step, and
one module for each format writes and reads files of them.
"""
