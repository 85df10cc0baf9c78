"""Lookup tables: countries by time zone, languages, referrer sources, spam hosts."""
