"""What a collector knows of the cluster that it sends its hits to."""

from attrs import define, field

NOT_PRIMARY_S = 10
"""After how many seconds a change is worth another attempt, while the primary is down."""


@define
class OtherCollector:
    """What a collector knows of another one."""

    url: str
    failure: str = "it was not asked yet"
    """Why it cannot be reached, "" if it can."""
    lag_s: float = 0.0
    """Its `ClusterState.lag_s`, 0 while it cannot be reached."""


@define
class ClusterState:
    """How far the cluster has the hits of a collector. Times are Unix seconds."""

    collector: int
    primary: int = 0
    """Whose settings count: the number of a collector, this one's without others."""
    others: dict[int, OtherCollector] = field(factory=dict)
    """The other collectors, by number."""
    passed_on: int = 0
    """How many hits other collectors have taken from this one since the start."""
    strayed: int = 0
    """How many of these are unloads and events, whose view another one has."""
    to_pass_on: int = 0
    """How many hits wait for other collectors, counted once for each of these."""
    dropped: str = ""
    """The file with changes that were made here while another one became the primary."""
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
    unanswered: str = ""
    """Why the latest question had no answer, "" if it had one. It may name servers."""
    rows: int = 0
    """How many rows of views and events were sent since the start."""
    sent_bytes: int = 0
    """How many bytes these and what goes with them were, as they were sent."""
    failures: int = 0
    """How often sending has failed since the start."""

    def lag_s(self, now: float) -> float:
        """Return how long the first row that waits has been stored, 0 if there is none."""
        return 0.0 if self.waiting_since is None else max(0.0, now - self.waiting_since)

    def greatest_lag_s(self, now: float) -> float:
        """Return the greatest `lag_s` of all collectors that can be reached."""
        return max(self.lag_s(now), *(other.lag_s for other in self.others.values()), 0.0)

    @property
    def is_primary(self) -> bool:
        """Whether settings are changed here."""
        return self.primary in (0, self.collector)

    @property
    def refusal(self) -> str:
        """Why settings cannot be changed here, "" if they can."""
        if self.is_primary:
            return ""
        primary = self.others.get(self.primary)
        is_down = primary is not None and primary.failure
        return (
            f"logins and changes are for the primary, collector {self.primary}"
            f"{', which cannot be reached' if is_down else ''}"
        )

    def degraded(self) -> str:
        """Return what needs attention, without the reason, "" for nothing."""
        found = [self._of_hits()]
        found.append("the cluster did not answer the latest question" if self.unanswered else "")
        for number, other in self.others.items():
            found.append(f"collector {number} cannot be reached" if other.failure else "")
        if not self.is_primary and self.primary not in self.others:
            found.append(f"cluster.collectors has no collector {self.primary}, the primary")
        if self.dropped:
            found.append(
                "changes that were made here while another collector became the primary were"
                " dropped: medamad cluster status names the file that has them"
            )
        return "; ".join(filter(None, found))

    def _of_hits(self) -> str:
        if self.failure:
            return (
                "the cluster takes no hits:"
                f" those that wait ({self.waiting} rows) are on this machine alone"
            )
        if self.lacking:
            return f"hits ({self.unsafe} rows) are on too few replicas"
        return ""

    def degraded_because(self) -> str:
        """Return what needs attention, with the reasons, "" for nothing."""
        reasons = [self.failure or self.lacking]
        if self.unanswered != self.failure:
            reasons.append(self.unanswered)
        reasons += [other.failure for other in self.others.values()]
        if self.dropped:
            reasons.append(f"make the changes in {self.dropped} again, and delete it")
        return self.degraded() and f"{self.degraded()}: {'; '.join(filter(None, reasons))}"
