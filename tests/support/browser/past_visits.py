"""A website that was visited at chosen times: `python past_visits.py VISITS …`, then as `run`.

A daemon takes hits at its own clock alone; here they are put into its store before it answers.
"""

import json
import sys
from argparse import ArgumentParser
from collections.abc import Sequence
from datetime import datetime
from functools import partial
from typing import Final

from attrs import asdict, frozen

from medamad.cli import run
from medamad.config.schema import Config, load
from medamad.domain.hits import Event, Hit, Unload, View
from medamad.web.backend import Backend

HOSTNAME: Final = "past.example"
_DAY_S: Final = 86_400


@frozen
class Visit:
    """A view; `at` is RFC 3339. It is its visitor's first of the day, and of the page, or none.

    Views with the same `visit` belong to one visit, and "" is a visit of its own. `times` are so
    many visits of their own, a minute apart; an order of each is of the amount `paid`, if any.
    """

    at: str
    path: str = "/"
    milliseconds: int = 20_000
    is_first: bool = True
    visit: str = ""
    referrer: str = ""
    times: int = 1
    paid: str = ""

    @property
    def time_ms(self) -> int:
        return int(datetime.fromisoformat(self.at).timestamp() * 1000)


def command(visits: Sequence[Visit]) -> Sequence[str]:
    """Return the command that runs the daemon after these visits, without `run`'s arguments."""
    return (sys.executable, __file__, json.dumps([asdict(visit) for visit in visits]))


async def fill(visits: Sequence[Visit], backend: Backend) -> None:
    """Register the website and store its visits."""
    first_s = min(visit.time_ms for visit in visits) // 1000
    website = await backend.store.add_website(HOSTNAME, first_s - _DAY_S)
    hits: list[Hit] = []
    last_pages: dict[str, str] = {}
    repeated = [(visit, minute) for visit in visits for minute in range(visit.times)]
    for number, (visit, minute) in enumerate(repeated):
        name = visit.visit or f"{number}"
        beacon = f"past-{number}"
        time_ms = visit.time_ms + minute * 60_000
        begun = View(
            website=website.number,
            time_ms=time_ms,
            beacon=beacon,
            first_today=visit.is_first,
            first_of_page=visit.is_first,
            path=visit.path,
            referrer=visit.referrer,
            identity=name.encode(),
            from_page=last_pages.get(name),
        )
        last_pages[name] = visit.path
        left = Unload(
            time_ms=time_ms + visit.milliseconds,
            beacon=beacon,
            duration_ms=visit.milliseconds,
        )
        hits += [begun, left]
        if visit.paid:
            paid = (("paid", visit.paid),)
            hits.append(
                Event(website=website.number, time_ms=time_ms + 1, properties=paid, beacon=beacon)
            )
    await backend.store.append(sorted(hits, key=lambda hit: hit.time_ms))


def main() -> int:
    parser = ArgumentParser()
    parser.add_argument("visits", type=json.loads)
    run.configure(parser)
    asked = parser.parse_args()

    def read() -> Config:
        return load(asked.config).with_overrides(asked.data, asked.listen)

    visits = [Visit(**visit) for visit in asked.visits]
    return run.run_daemon(
        read(), read_config=read, started=lambda _started: None, prepare=partial(fill, visits)
    )


if __name__ == "__main__":
    sys.exit(main())
