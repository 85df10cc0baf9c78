"""Fuzzed bodies of hits: each is accepted, or rejected with a reason, quickly."""

import json
import os
import random
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
import pytest_twisted
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from support.abuse.mutated_bodies import ENOUGH, ODD, WHOLE, mutated
from support.received_hits import received
from support.web.client import Connection, encoded, parse
from support.web.daemon_in_memory import Server, build_server
from twisted.internet.defer import Deferred, DeferredList

from medamad.domain.errors import BadRequest, NotFound
from medamad.ingest.networks import Sender, address_of

AT_ONCE = 500
LONGEST_S = 0.05
"""What the work on one body may take of the reactor's time."""
AGENTS = (
    "",
    "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 Chrome/130.0.0.0 Safari/537.36",
    "curl/8.0",
)
LOCALES = ("", "de-DE,de;q=0.9", "*", "xx-YY-ZZ", "-" * 200)


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Server]:
    built = pytest_twisted.blockon(Deferred.fromCoroutine(build_server(tmp_path, map_size=4 << 30)))
    pytest_twisted.blockon(Deferred.fromCoroutine(built.store.add_website("example.com", 1)))
    yield built
    pytest_twisted.blockon(built.pipeline.queue.drained())
    pytest_twisted.blockon(Deferred.fromCoroutine(built.store.close()))


async def outcome(place: Server, body: bytes, sender: Sender) -> str:
    """Return what becomes of a body; raises whatever is no refusal of the body."""
    try:
        return await received(place.pipeline, body, sender) or "stored"
    except (BadRequest, NotFound) as refusal:
        return type(refusal).__name__ if len(str(refusal)) < 600 else "a long story"


def judged_s(place: Server, body: bytes, sender: Sender) -> tuple[float, "Deferred[str]"]:
    """Start processing a body; return the seconds until it is queued or rejected."""
    began = time.thread_time()
    fate = Deferred.fromCoroutine(outcome(place, body, sender))
    return time.thread_time() - began, fate


async def send_mutated(place: Server, count: int, seed: int) -> tuple[Counter[str], float]:
    """Return how many bodies met which fate, and the most seconds that one took to be judged."""
    source = random.Random(seed)  # noqa: S311 - it is to be repeated
    address = address_of("198.51.100.7")
    found: Counter[str] = Counter()
    slow = []
    for _ in range(0, count, AT_ONCE):
        waiting = []
        for _ in range(AT_ONCE):
            body = mutated(source)
            sender = Sender(address, source.choice(AGENTS), source.choice(LOCALES), gpc=False)
            seconds, fate = judged_s(place, body, sender)
            waiting.append(fate)
            if seconds > LONGEST_S / 5:
                slow.append((body, sender))
        results = await DeferredList(waiting, fireOnOneErrback=True, consumeErrors=True)
        found.update(fate for _, fate in results)
        place.now += 1
    # Now and then it is not the body that takes long: garbage is collected, a page is read.
    longest = [min(judged_s(place, *one)[0] for _ in range(3)) for one in slow]
    return found, max(longest, default=0.0)


@pytest_twisted.ensureDeferred
async def test_mutated_bodies_are_accepted_or_rejected(place: Server) -> None:
    found, longest = await send_mutated(place, 4_000, seed=1)
    assert found.keys() == {"stored", "BadRequest", "NotFound"}
    # They have to come far to be of use.
    assert found["stored"] > 600
    assert longest < LONGEST_S


@pytest.mark.slow
@pytest.mark.timeout(7_200)
@pytest_twisted.ensureDeferred
async def test_a_million_mutated_bodies(place: Server, capsys: pytest.CaptureFixture[str]) -> None:
    found, longest = await send_mutated(place, 1_000_000, seed=time.time_ns())
    with capsys.disabled():
        os.write(1, f"\n{dict(found)}, the longest {longest * 1_000:.1f} ms\n".encode())
    assert found.keys() == {"stored", "BadRequest", "NotFound"}
    assert longest < LONGEST_S


TEXT = st.text(max_size=40) | st.sampled_from(
    ["example.com", "https://example.com/", "https://example.com/?utm_source=", "UTC"]
)
ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=6,
)
ODDITIES = st.sampled_from([one.decode("latin-1") for one in ODD])
URL = st.builds("https://example.com{}{}".format, ODDITIES, st.text(max_size=60))
FIELDS = st.fixed_dictionaries(
    {},
    optional=dict.fromkeys("ebpqnwmgx", ANYTHING)
    | {
        "u": URL | ANYTHING,
        "r": URL | ANYTHING,
        "t": TEXT,
        "d": st.dictionaries(TEXT, TEXT | st.integers() | st.floats(), max_size=5),
    },
)
BODIES = (
    st.binary(max_size=300)
    | st.builds(mutated, st.randoms(use_true_random=True))
    | st.builds(lambda whole, fields: json_of(whole | fields), st.sampled_from(WHOLE), FIELDS)
)


def json_of(content: object) -> bytes:
    return json.dumps(content).encode()[:ENOUGH]


@given(BODIES)
@example(b"")
@example(json_of(WHOLE[0]))
@settings(
    max_examples=3 * settings.default.max_examples,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
def test_any_body_is_accepted_or_rejected_quickly(place: Server, body: bytes) -> None:
    connection = Connection(place.site)
    place.now += 1
    connection.push(encoded("POST", "/api/event/hit", {"Content-Length": str(len(body))}) + body)
    # A long one is processed in a later turn.
    place.reactor.advance(0)
    if connection.wire.value():
        answer, rest = parse(connection.wire.value(), "POST")
        assert rest == b""
        assert answer.status in (400, 404)
        assert ": " in answer.error
    else:
        # It waits to be stored.
        assert len(place.pipeline.queue) > 0
