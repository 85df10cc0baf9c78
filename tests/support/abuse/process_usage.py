"""What is measured of a process."""

from pathlib import Path


def anonymous_bytes(pid: int) -> int:
    """Return the memory that a process has for itself, without the pages of files that it maps."""
    for line in Path(f"/proc/{pid}/status").read_text("ascii").splitlines():
        if line.startswith("RssAnon:"):
            return int(line.split()[1]) * 1_024
    raise AssertionError(f"process {pid} has ended")
