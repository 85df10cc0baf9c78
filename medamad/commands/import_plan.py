"""What `medamad import` is about to bring: rows, or days that another program has added up."""

from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from datetime import tzinfo
from typing import TypeAlias

from attrs import frozen

from medamad.commands.import_past import Past
from medamad.model.errors import Conflict
from medamad.model.websites import Website
from medamad.moves.day_survey import DayGathering, DaySurvey, days_there
from medamad.moves.gathering import Gathering, gather
from medamad.moves.known import Known
from medamad.moves.survey import Given, Survey
from medamad.operator.import_days import days_request
from medamad.operator.import_rows import rows_request
from medamad.operator.wire import Request
from medamad.store.errors import DamagedBlock
from medamad.store.offline import Guest
from medamad.store.origins import Span

Gathered: TypeAlias = Gathering | DayGathering


@frozen(eq=False)
class KnownDays:
    """The days of which a website has something in a zone, and which day it is."""

    there: AbstractSet[int]
    zone: tzinfo
    today: int

    @classmethod
    def of(
        cls, guest: Guest, website: Website, zone: tzinfo, today: int, *, overlapping: bool
    ) -> "KnownDays":
        """Look at what a website has, or take it for nothing. Raises Conflict."""
        there = set() if overlapping else days_there(guest.hold(website, _damaged), zone)
        return cls(there, zone, today)


@frozen(eq=False)
class Plan:
    """What is to be imported, and what the website has of it."""

    website: Website
    files: Sequence[Given]
    digest: str
    survey: Survey
    newest: int
    """The last batch of the website that it was checked against."""
    known: Known | KnownDays
    past: Past
    """What of it does not stay: that is counted as it comes in."""

    def gathering(self, spans: Sequence[Span]) -> Gathered:
        """Begin to gather what comes in."""
        if isinstance(self.known, Known):
            return Gathering(self.known, self.survey, spans)
        assert isinstance(self.survey, DaySurvey)  # noqa: S101 - only its days are looked for
        known = self.known
        return DayGathering(self.survey.days, known.zone, known.today, known.there)

    def requests(self, gathering: Gathered, number: int) -> Iterator[Request | None]:
        """Go through it, a little with every step; gives what brings some of it, or nothing yet."""
        if isinstance(gathering, Gathering):
            for piece in gather(self.files, gathering):
                if piece is not None:
                    self.past.add(piece.content)
                yield None if piece is None else rows_request(number, piece)
        else:
            for counts in gathering.pieces():
                if counts is not None:
                    self.past.add_days(counts)
                yield None if counts is None else days_request(number, counts)


def known_rows(guest: Guest, website: Website, found: Survey, *, overlapping: bool) -> Known:
    """Find which rows a website has. Raises Conflict."""
    held, origins = guest.hold(website, _damaged), guest.origins(website)
    batches = guest.batches(website)
    return Known.of(held, origins, batches, found.ranges, overlapping=overlapping)


def _damaged(error: DamagedBlock) -> None:
    raise Conflict(f"the store is damaged, and it cannot be told what is there: {error}")
