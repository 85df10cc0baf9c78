"""What a store holds, in figures for the operator."""

from attrs import frozen


@frozen(kw_only=True)
class Figures:
    """The figures of one moment."""

    used_bytes: int
    """Of the store's file."""
    map_bytes: int
    """What the file can grow to."""
    free_disk_bytes: int
    blocks: int
    """Sealed blocks of all websites."""
    tail_views: int
    """Views of all websites that are in memory, and not sealed yet."""
