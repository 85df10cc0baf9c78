"""The engine over the store of one machine: sums of the columns and counters of a snapshot.

`reader.EmbeddedReader` is what reports ask. Everything here is synchronous Python over numpy
columns, with the inner loops compiled.
"""
