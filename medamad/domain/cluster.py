"""What a collector knows of the cluster that it sends its hits to."""

from attrs import define


@define
class ClusterState:
    """How far the cluster has the hits of a collector. Times are Unix seconds."""

    collector: int
    waiting: int = 0
    """How many rows of the log wait to be sent."""
    waiting_since: float | None = None
    """When the first of them was stored, None if there is none."""
    unsafe: int = 0
    """How many rows of the log were sent, but not to as many replicas as they should be."""
    lacking: str = ""
    """Why too few replicas have them, "" if enough have. It may name servers."""
    failure: str = ""
    """Why nothing can be sent, "" if it can. It may name servers."""
    rows: int = 0
    """How many rows of views and events were sent since the start."""
    failures: int = 0
    """How often sending has failed since the start."""

    def lag_s(self, now: float) -> float:
        """Return how long the first row that waits has been stored, 0 if there is none."""
        return 0.0 if self.waiting_since is None else max(0.0, now - self.waiting_since)

    def degraded(self) -> str:
        """Return what needs attention, without the reason, "" for nothing."""
        if self.failure:
            return (
                "the cluster takes no hits:"
                f" those that wait ({self.waiting} rows) are on this machine alone"
            )
        if self.lacking:
            return f"hits ({self.unsafe} rows) are on too few replicas"
        return ""

    def degraded_because(self) -> str:
        """Return what needs attention, with the reason, "" for nothing."""
        return self.degraded() and f"{self.degraded()}: {self.failure or self.lacking}"
