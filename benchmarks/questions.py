"""How long the daemon takes to answer each statistic over 250,000 views of one website.

    python benchmarks/questions.py [--repeat 15] [--slowest MS]

Each question goes through HTTP and is asked again and again; the median counts. With --slowest
the exit status is 1 when a median is above it.
"""

import http.client
import sys
import tempfile
import time
from argparse import ArgumentParser
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from statistics import median
from urllib.parse import urlencode

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from daemon import Client, Daemon

from medamad.demo.sites import SITES

HOSTNAME = SITES[0].hostname
FILLED = (sys.executable, str(Path(__file__).with_name("filled.py")))
STATISTICS = [
    "pages",
    "time",
    "referrers",
    "sources",
    "mediums",
    "campaigns",
    "terms",
    "contents",
    "browsers",
    "os",
    "devices",
    "countries",
    "languages",
    "properties",
]
MONTH_AGO = (datetime.now(UTC) - timedelta(days=30)).isoformat(timespec="seconds")
VARIANTS: dict[str, dict[str, str]] = {
    "all time": {},
    "30 days": {"start": MONTH_AGO},
    "one browser": {"browser[eq]": "Chrome"},
    "path contains": {"path[contains]": "jour"},
    "with a property": {"prop_name[eq]": "author"},
}
FURTHER: tuple[tuple[str, str, dict[str, str]], ...] = (
    ("summary", "by day", {"interval": "day"}),
    ("summary", "by hour", {"interval": "hour"}),
    ("summary", "by month, one browser", {"interval": "month", "browser[eq]": "Chrome"}),
    ("summary", "by day, with the period before", {
        "interval": "day",
        "previous": "true",
        "start": MONTH_AGO,
        "end": datetime.now(UTC).isoformat(timespec="seconds"),
    }),
    ("referrers", "by address", {"grouped": "false"}),
    ("languages", "by locale", {"locale": "true"}),
    ("pages", "short", {"summary": "true"}),
    ("time", "short", {"summary": "true"}),
    ("properties", "of one name", {"prop_name[eq]": "topic"}),
    ("live", "", {}),
)  # fmt: skip


def questions() -> Iterator[tuple[str, str, dict[str, str]]]:
    """Give each statistic, what is asked of it, and the parameters that ask it."""
    for statistic in ("summary", *STATISTICS):
        for name, parameters in VARIANTS.items():
            yield statistic, name, parameters
    yield from FURTHER


def ask(owner: Client, target: str, repeat: int) -> float:
    """Give the median time of a question's answer, in milliseconds, over one connection."""
    connection = http.client.HTTPConnection("127.0.0.1", owner.port)
    times = []
    for _ in range(repeat + 1):
        began = time.perf_counter()
        connection.request("GET", target, headers={"Cookie": owner.cookie or ""})
        answer = connection.getresponse()
        body = answer.read()
        times.append((time.perf_counter() - began) * 1000)
        assert answer.status == http.client.OK, body
    connection.close()
    return median(times[1:])


def main() -> int:
    """Measure and print."""
    parser = ArgumentParser(description=__doc__)
    parser.add_argument("--repeat", type=int, default=15)
    parser.add_argument("--slowest", type=float, metavar="MS")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        daemon = Daemon(Path(folder), command=FILLED)
        daemon.start()
        try:
            owner = daemon.client()
            views = owner.get(f"/api/website/{HOSTNAME}/summary")["current"]["pageviews"]
            print(f"{views:,} views; median of {arguments.repeat} answers in milliseconds")
            medians = {}
            for statistic, name, parameters in questions():
                target = f"/api/website/{HOSTNAME}/{statistic}?{urlencode(parameters)}"
                medians[statistic, name] = ask(owner, target, arguments.repeat)
                print(f"{medians[statistic, name]:8.2f}  {statistic:12} {name}")
        finally:
            daemon.stop()
    slowest = max(medians, key=lambda question: medians[question])
    print(f"slowest: {medians[slowest]:.2f} ms, {' '.join(slowest)}")
    return int(arguments.slowest is not None and medians[slowest] > arguments.slowest)


if __name__ == "__main__":
    raise SystemExit(main())
