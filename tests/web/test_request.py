"""What is kept of a request."""

import pytest_twisted
from support.web.client import Connection, encoded
from support.web.daemon_in_memory import House
from twisted.web.http_headers import _nameEncoder

PING = "/event/ping"
REMEMBERED = _nameEncoder._canonicalHeaderCache
"""The names of headers that Twisted never forgets."""


@pytest_twisted.ensureDeferred
async def test_no_name_of_a_header_that_a_stranger_makes_up_outlives_its_request(
    house: House,
) -> None:
    connection = Connection(house.site)
    known = {"User-Agent": "d", "Via": "e"}
    assert (await connection.talk(encoded("GET", PING, known))).status == 200
    before = set(REMEMBERED)
    assert before
    made_up = {"X-Made-Up": "a", "X" * 5_000: "b", "aCCEPT": "c", "uSER-aGENT": "d", "vIA": "e"}
    assert (await connection.talk(encoded("GET", PING, made_up))).status == 200
    assert set(REMEMBERED) == before


@pytest_twisted.ensureDeferred
async def test_names_of_headers_are_read_in_any_case(house: House) -> None:
    connection = Connection(house.site)
    for name in ("If-Modified-Since", "if-modified-since", "iF-mODIFIED-sINCE"):
        assert (await connection.talk(encoded("GET", PING, {name: "nonsense"}))).status == 400
