"""What the background work of a store has done: counted from outside, by what there is of it."""

from collections import Counter

from attrs import define, field

from medamad.storage.segments.format import Segment, SegmentHeader
from medamad.storage.store import Store


@define(eq=False)
class Observed:
    """Looks at a store again and again, and counts what has become of its segments."""

    counts: Counter[str] = field(factory=Counter)
    _headers: dict[int, dict[int, SegmentHeader]] = field(factory=dict)
    _days: dict[int, set[int]] = field(factory=dict)

    def look(self, store: Store) -> None:
        """Compare with what was there the last time."""
        for partition in store.partitions.all():
            headers = {
                segment.number: segment.header
                for top in partition.segments
                for segment in _all(top)
            }
            known = self._headers.get(partition.website, {})
            self._headers[partition.website] = headers
            fresh = [header for number, header in headers.items() if number not in known]
            self.counts["segments"] += sum(not header.members for header in fresh)
            self.counts["groups"] += sum(bool(header.members) for header in fresh)
            gone = [header for number, header in known.items() if number not in headers]
            self.counts["groups taken apart"] += sum(bool(header.members) for header in gone)
            for old in gone:
                if not old.members:
                    self._replaced(old, [header for header in fresh if not header.members])
            days = {segment.number for segment in partition.rollups}
            self.counts["days summed"] += len(days - self._days.get(partition.website, set()))
            self._days[partition.website] = days
            overlay = partition.overlays.values()
            self.counts["durations laid over"] += sum(len(found.places) > 0 for found in overlay)
            self.counts["views laid over"] += sum(len(found.events) > 0 for found in overlay)

    def forget(self) -> None:
        """Begin with another store."""
        self._headers.clear()
        self._days.clear()

    def _replaced(self, old: SegmentHeader, fresh: list[SegmentHeader]) -> None:
        for new in fresh:
            is_within = new.first_sequence <= old.first_sequence
            if is_within and old.last_sequence <= new.last_sequence:
                size = (old.views, old.own_rows + old.loose_rows)
                is_same = (new.views, new.own_rows + new.loose_rows) == size
                self.counts["folds" if is_same else "merges"] += 1


def _all(segment: Segment) -> list[Segment]:
    return [segment, *(each for member in segment.members for each in _all(member))]
