"""Asks expensive questions, several at once, until the standard input ends.

    python query_load.py PORT COOKIE HOSTNAME AT_ONCE [worst]

With "worst" those of which an answer is largest and a filter longest are asked too, and
exports, more than there may be at once. Says "ready" once all ask; in the end, how many answers
there were and the statuses of them, and how many were not waited for.
"""

import sys
import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import count, cycle, islice, product
from pathlib import Path
from urllib.parse import quote

sys.path.insert(0, str(Path(__file__).parents[2]))

from support.daemon import Client

FILTERS = (
    "",
    "path[contains]=a",
    "browser[neq]=Chrome&path[not_contains]=zz",
    "prop_name[contains]=a",
    "referrer[not_starts_with]=x&language[contains]=e",
)
STATISTICS = (
    *("pages", "time", "referrers", "sources", "mediums", "campaigns", "browsers", "os", "devices"),
    *("countries", "languages", "properties", "terms", "contents", "referrers?grouped=false"),
    "languages?locale=true",
    "summary?interval=minute&start=2026-11-01T00:00:00Z&end=2026-11-30T00:00:00Z",
    "summary?interval=hour&previous=true&start=2026-01-01T00:00:00Z&end=2026-12-31T00:00:00Z",
    "summary?interval=day&timezone=America/St_Johns",
)


LONG_FILTERS = (
    # As many as there may be, and as much as fits into the head of a request.
    "&".join(f"path[not_contains]={number:x}" for number in range(140)),
    "path[not_in]=" + ",".join(f"/articles/{number:x}" for number in range(500)),
    "referrer[not_contains]=" + "x" * 12_000,
    "prop_name[contains]=&prop_value[not_ends_with]=7",
)


EXPORTS = ("export?what=statistics", "export?what=statistics&format=ndjson")


def addresses(
    hostname: str, filters: Sequence[str] = FILTERS, among: Sequence[str] = STATISTICS
) -> Iterator[str]:
    """Return what is asked, again and again."""
    for statistic, one in cycle(product(among, filters)):
        between = "&" if "?" in statistic else "?"
        yield f"/api/website/{hostname}/{statistic}{between}{quote(one, safe='=&')}"


def ask(
    client: Client, some: Iterator[str], found: Counter[int | str], ended: threading.Event
) -> None:
    for number in count():
        # However long an answer takes, each of them asks again.
        if number > 1 and ended.is_set():
            return
        try:
            found[client.request("GET", next(some)).status] += 1
        except OSError:
            # Whoever has waited too long goes, and asks for something else.
            found["gone"] += 1


if __name__ == "__main__":
    _, to_port, cookie, asked_of, at_once, *mood = sys.argv
    filters = (*FILTERS, *LONG_FILTERS) if mood else FILTERS
    among = (*STATISTICS, *EXPORTS) if mood else STATISTICS
    statuses: Counter[int | str] = Counter()
    is_over = threading.Event()
    askers = [
        threading.Thread(
            target=ask,
            args=(
                Client(int(to_port), cookie),
                # Each begins elsewhere, so that unlike questions are asked together.
                islice(addresses(asked_of, filters, among), number * 7, None),
                statuses,
                is_over,
            ),
        )
        for number in range(int(at_once))
    ]
    for asker in askers:
        asker.start()
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    sys.stdin.read()
    is_over.set()
    for asker in askers:
        asker.join()
    sys.stdout.write(f"{dict(statuses)}\n")
