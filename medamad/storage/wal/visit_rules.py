"""The rules by which a view continues a live visit: pure functions of the visits of one key.

All visits of a key come from one address with the same browser and language: they may be one
person's, or those of many behind one address. Browsers count their views of the day, which tells
them apart, as does the page that a view comes from.
"""

from collections.abc import Iterable, Sequence
from typing import Final

import msgspec
from msgspec.structs import replace

from medamad.domain.hits import View

LATE_MS: Final = 60_000
"""How long after a later view of its visit a view may arrive."""
ALONE_MS: Final = 300_000
SHARED_MS: Final = 60_000
"""How long after a visit's last activity a view continues it if only its number suggests it: where
nothing shows that several people share the key, and where something does."""
_KNOWN: Final = 16
"""How far below its latest number a visit remembers which views it has."""
ALL_TAKEN: Final = (1 << _KNOWN) - 1
_ALL_BUT_LAST_TAKEN: Final = ALL_TAKEN - 1


class LiveVisit(msgspec.Struct, frozen=True):
    """What is known of a visit that may go on. Only ever in memory."""

    number: int
    began_ms: int
    """When its first view was, by the time that its hit states."""
    last_ms: int
    """When it was last active, by the times that hits state."""
    arrived_ms: int
    """When something of it last arrived."""
    viewed_ms: int
    """When its latest page was shown."""
    page: int
    """The hash of its latest page."""
    page_before: int
    page_before_that: int
    """The hashes of the two before: a page may be left open while others are read in tabs."""
    number_today: int
    """Which view of the visitor's day the latest one was, 0 if unknown."""
    width_px: int
    taken: int
    """Bit i is set if view `number_today` - 1 - i cannot be a view of this visit any more."""

    def has_room_for(self, number_today: int) -> bool:
        """Return whether a view of that number, below the latest, is still missing."""
        below = self.number_today - number_today - 1
        return 0 <= below < _KNOWN and not self.taken >> below & 1

    def begins_day(self, view: View, midnight_ms: int) -> bool:
        """Return whether a view is the first of a day on which the visit goes on over midnight."""
        return (
            view.number_today == 1
            and self.viewed_ms < midnight_ms <= (view.happened_ms or view.time_ms)
            and bool(_on_page((self,), view))
        )

    def with_view(self, view: View, midnight_ms: int) -> "LiveVisit":
        """Return the visit with one more view; the visitor's day began at `midnight_ms`."""
        happened_ms = view.happened_ms or view.time_ms
        last_ms, arrived_ms = max(self.last_ms, happened_ms), max(self.arrived_ms, view.time_ms)
        is_late = view.number_today and self.has_room_for(view.number_today)
        if is_late and not self.begins_day(view, midnight_ms):
            taken = self.taken | 1 << self.number_today - view.number_today - 1
            return replace(self, last_ms=last_ms, arrived_ms=arrived_ms, taken=taken)
        if not view.number_today and happened_ms < self.last_ms:
            return replace(self, last_ms=last_ms, arrived_ms=arrived_ms)
        return LiveVisit(
            number=self.number,
            began_ms=self.began_ms,
            last_ms=last_ms,
            arrived_ms=arrived_ms,
            viewed_ms=happened_ms,
            page=_hash_of(view.path),
            page_before=self.page,
            page_before_that=self.page_before,
            number_today=view.number_today or self.number_today,
            width_px=view.width_px,
            taken=self._taken_before(view.number_today),
        )

    def _taken_before(self, number_today: int) -> int:
        """Return what is taken once the latest view is the one of that number."""
        ahead = number_today - self.number_today
        if not number_today:
            return self.taken
        if not self.number_today or ahead <= 0:
            return ALL_TAKEN
        if ahead > _KNOWN:
            return 0
        return (self.taken << ahead | 1 << ahead - 1) & ALL_TAKEN


def begin(view: View, number: int) -> LiveVisit:
    """Return a new visit that begins with a view.

    If that came from a page of the website, the view of this page may still arrive.
    """
    happened_ms = view.happened_ms or view.time_ms
    return LiveVisit(
        number=number,
        began_ms=happened_ms,
        last_ms=happened_ms,
        arrived_ms=view.time_ms,
        viewed_ms=happened_ms,
        page=_hash_of(view.path),
        page_before=0,
        page_before_that=0,
        number_today=view.number_today,
        width_px=view.width_px,
        taken=ALL_TAKEN if view.from_page is None else _ALL_BUT_LAST_TAKEN,
    )


def find(
    visits: Sequence[LiveVisit], view: View, midnight_ms: int, *, is_shared: bool = False
) -> LiveVisit | None:
    """Return which visit a view continues, None if it begins a new one.

    The visits are those of the view's key that may go on. `midnight_ms` is when
    the visitor's day began.
    """
    if not visits:
        return None
    if not view.number_today:
        return _without_number(visits, view, midnight_ms)
    if view.from_page is None:
        found = _from_elsewhere(visits, view, is_shared=is_shared)
    else:
        found = _from_page(visits, view, midnight_ms, is_shared=is_shared)
    return found or _late(visits, view)


def _without_number(visits: Sequence[LiveVisit], view: View, midnight_ms: int) -> LiveVisit | None:
    if view.first_today:
        return _of_day_before(visits, view, midnight_ms)
    if on_page := _on_page(visits, view):
        return _best(on_page, view)
    if not view.width_px:
        # Of Medama's tracker, the pixel, which does not say where from, or a visitor with a name.
        return _best(visits, view)
    return _best(_plausible(visits, view, is_shared=bool(view.referrer)), view)


def _of_day_before(visits: Sequence[LiveVisit], view: View, midnight_ms: int) -> LiveVisit | None:
    """Return the visit that a first view of the day continues: its page was the latest."""
    before = [visit for visit in visits if visit.viewed_ms < midnight_ms]
    return _best(_on_page(before, view), view)


def _from_elsewhere(
    visits: Sequence[LiveVisit], view: View, *, is_shared: bool
) -> LiveVisit | None:
    """Return the visit of a view that comes from no page of the website."""
    return _best(_plausible(_at(visits, view.number_today - 1), view, is_shared=is_shared), view)


def _plausible(visits: Iterable[LiveVisit], view: View, *, is_shared: bool) -> list[LiveVisit]:
    """Return the visits that a view may continue if only its number, or its width, suggests it.

    Of people who share a key, one may be at the number by chance.
    """
    happened_ms = view.happened_ms or view.time_ms
    most_ms = SHARED_MS if is_shared else ALONE_MS
    return [
        visit
        for visit in visits
        if visit.width_px == view.width_px and happened_ms - visit.last_ms <= most_ms
    ]


def _from_page(
    visits: Sequence[LiveVisit], view: View, midnight_ms: int, *, is_shared: bool
) -> LiveVisit | None:
    """Return the visit of a view that comes from a page of the website."""
    number = view.number_today
    if number == 1:
        return _of_day_before(visits, view, midnight_ms)
    previous = _at(visits, number - 1)
    if previous:
        plausible = _plausible(previous, view, is_shared=is_shared)
        return _best(_on_page(previous, view) or plausible, view)
    # A view was lost.
    on_page = _on_page((visit for visit in visits if visit.number_today < number), view)
    if on_page:
        largest = max(visit.number_today for visit in on_page)
        return _best([visit for visit in on_page if visit.number_today == largest], view)
    return _best(_plausible(_at(visits, number - 2), view, is_shared=is_shared), view)


def _late(visits: Sequence[LiveVisit], view: View) -> LiveVisit | None:
    """Return the visit in which a view is missing that arrives a little late."""
    happened_ms = view.happened_ms or view.time_ms
    recent = [
        visit
        for visit in visits
        if visit.number_today > view.number_today
        and happened_ms - visit.last_ms <= LATE_MS
        and visit.has_room_for(view.number_today)
    ]
    return _best(recent, view)


def shows_sharing(visits: Iterable[LiveVisit], view: View, midnight_ms: int) -> bool:
    """Return whether a view that begins a visit is another person's than one of the visits.

    The numbers of one browser only grow until midnight.
    """
    return any(
        0 < view.number_today <= visit.number_today and visit.viewed_ms >= midnight_ms
        for visit in visits
    )


def _at(visits: Iterable[LiveVisit], number_today: int) -> list[LiveVisit]:
    return [visit for visit in visits if number_today and visit.number_today == number_today]


def _on_page(visits: Iterable[LiveVisit], view: View) -> list[LiveVisit]:
    if view.from_page is None:
        return []
    page = _hash_of(view.from_page)
    return [
        visit for visit in visits if page in (visit.page, visit.page_before, visit.page_before_that)
    ]


def _hash_of(path: str) -> int:
    """Return a hash of a page that is never 0. It is salted, and differs in each process."""
    return hash(path) & 0xFFFFFFFF or 1


def _best(visits: Sequence[LiveVisit], view: View) -> LiveVisit | None:
    """Return the visit with the view's width, else the one that is closest in time."""
    if len(visits) < 2:  # noqa: PLR2004 - nothing to choose
        return visits[0] if visits else None
    happened_ms = view.happened_ms or view.time_ms
    return min(
        visits,
        key=lambda visit: (visit.width_px != view.width_px, abs(happened_ms - visit.last_ms)),
    )
