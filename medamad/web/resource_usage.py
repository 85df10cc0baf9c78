"""What the machine and this process use: processor, memory and disk."""

from pathlib import Path
from typing import TypeAlias

import psutil

UsageFigures: TypeAlias = dict[str, float | int]


class ResourceUsage:
    """Reads the use of resources. That of the processor is since the last reading."""

    def __init__(self) -> None:
        self._process = psutil.Process()
        # The first reading of each only sets the start.
        psutil.cpu_percent()
        self._process.cpu_percent()

    def of_machine(self, data_dir: Path) -> dict[str, UsageFigures]:
        """Return the use of processor and memory, and of the volume that holds a folder."""
        threads = psutil.cpu_count() or 1
        memory = psutil.virtual_memory()
        disk = psutil.disk_usage(str(data_dir))
        return {
            "cpu": {
                "usage": min(max(psutil.cpu_percent(), 0.0), 100.0),
                "cores": psutil.cpu_count(logical=False) or threads,
                "threads": threads,
            },
            "memory": {"used": memory.used, "total": memory.total},
            "disk": {"used": disk.used, "total": disk.total},
        }

    def of_process(self, now: float) -> UsageFigures:
        """Return what this process uses: percent of one processor, bytes, seconds."""
        with self._process.oneshot():
            return {
                "cpu": self._process.cpu_percent(),
                "memory": self._process.memory_info().rss,
                "threads": self._process.num_threads(),
                "uptime": max(int(now - self._process.create_time()), 0),
            }
