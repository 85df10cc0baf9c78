"""The expected content of a store, kept naively as lists of dicts."""

from attrs import define, field, fields_dict
from support.storage.contents import Row, StoredRows, in_order

from medamad.domain.hits import Event, Hit, StoredView, Unload, View

DAY_MS = 86_400_000
EARLY_MS = 60_000
_STORED = ("time_ms", *fields_dict(StoredView))
_OWN_NAMES = {"first_today": "p", "first_of_page": "q"}


@define(eq=False)
class NaiveStore:
    """The expected rows after the hits that were appended."""

    websites: dict[int, tuple[list[Row], list[Row]]] = field(factory=dict)
    _known: dict[str, tuple[int, Row]] = field(factory=dict)
    _early: list[tuple[str, int, int | tuple[int, Row]]] = field(factory=list)

    def add_website(self, number: int) -> None:
        self.websites[number] = ([], [])

    def delete_website(self, number: int) -> None:
        del self.websites[number]

    def restart(self) -> None:
        """Drop what waits for its load, which is only in memory."""
        self._early.clear()

    def append(self, hit: Hit) -> None:
        match hit:
            case View():
                self._view(hit)
            case Unload():
                self._leaving(hit)
            case Event():
                self._event(hit)

    def rows(self, number: int) -> StoredRows:
        """Return the expected result of `contents.stored_rows` for a website."""
        views, events = self.websites[number]
        shown = [
            {**event, "view": of and (of["path"], of["time_ms"])}
            for event in events
            for of in (event["view"],)
        ]
        return in_order(dict(view) for view in views), in_order(shown)

    def _view(self, view: View) -> None:
        if view.website not in self.websites or self._find(view.beacon, view.time_ms) is not None:
            return
        row: Row = {_OWN_NAMES.get(name, name): getattr(view, name) for name in _STORED}
        # No view here says who the visitor is, so none belongs to a visit.
        row |= {"duration_ms": 0, "visit_offset": 0}
        views, _ = self.websites[view.website]
        views.append(row)
        self._known[view.beacon] = (view.website, row)
        if view.properties:
            self._happens(view.website, view.time_ms, row, view.properties)
        for beacon, came_ms, early in self._early:
            if beacon != view.beacon or abs(view.time_ms - came_ms) > EARLY_MS:
                continue
            if isinstance(early, int):
                row["duration_ms"] = max(row["duration_ms"], early)
            elif early[0] == view.website:
                early[1]["view"] = row
        self._early = [early for early in self._early if early[0] != view.beacon]

    def _leaving(self, unload: Unload) -> None:
        known = self._find(unload.beacon, unload.time_ms)
        if known is None:
            self._early.append((unload.beacon, unload.time_ms, unload.duration_ms))
        else:
            known[1]["duration_ms"] = max(known[1]["duration_ms"], unload.duration_ms)

    def _event(self, event: Event) -> None:
        if event.website not in self.websites:
            return
        known = self._find(event.beacon, event.time_ms) if event.beacon else None
        of = known[1] if known is not None and known[0] == event.website else None
        row = self._happens(event.website, event.time_ms, of, event.properties)
        if event.beacon and known is None:
            self._early.append((event.beacon, event.time_ms, (event.website, row)))

    def _happens(
        self, website: int, time_ms: int, view: Row | None, properties: tuple[tuple[str, str], ...]
    ) -> Row:
        row = {"time_ms": time_ms, "view": view, "properties": sorted(properties)}
        self.websites[website][1].append(row)
        return row

    def _find(self, beacon: str, now_ms: int) -> tuple[int, Row] | None:
        known = self._known.get(beacon)
        if known is None or known[0] not in self.websites:
            return None
        return known if now_ms - known[1]["time_ms"] <= DAY_MS else None
