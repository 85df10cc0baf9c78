"""What a collector knows of the cluster that it sends its hits to."""

from attrs import define


@define
class ClusterState:
    """How far the cluster has the hits of a collector. Times are Unix seconds."""

    collector: int
    left: int = 0
    """How many rows of the log wait to be sent."""
    behind_since: float | None = None
    """Since when there has been something that is not sent, None if all was sent a moment ago."""
    unsafe: int = 0
    """How many rows of the log were sent, but not to as many replicas as they should be."""
    lacking: str = ""
    """Why too few replicas have them, "" if enough have."""
    failure: str = ""
    """Why nothing can be sent, "" if it can."""
    rows: int = 0
    """How many rows of views and events were sent since the start."""
    failures: int = 0
    """How often sending has failed since the start."""

    def behind_s(self, now: float) -> float:
        """Return for how long something has waited."""
        return 0.0 if self.behind_since is None else max(0.0, now - self.behind_since)

    def degraded(self, now: float) -> str:
        """Return what needs attention, "" for nothing."""
        if self.failure:
            return (
                f"hits of the last {self.behind_s(now):.0f} s are only on this machine, as the"
                f" cluster does not take them: {self.failure}"
            )
        if self.lacking:
            return f"hits ({self.unsafe}) are on too few replicas: {self.lacking}"
        return ""
