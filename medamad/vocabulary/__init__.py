"""What codes are called: countries by time zone, languages, sources of visits, spam hosts."""
