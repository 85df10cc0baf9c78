"""Background work on segments: flush, compaction, retention and purge."""
