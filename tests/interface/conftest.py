"""One daemon for the tests of invalid input; the cases of slow tests are made only for them."""

from collections.abc import Generator, Iterator
from http.client import HTTPConnection
from typing import Any

import pytest
from attrs import define
from support.daemon import PATIENCE_S, Answer, Daemon, running


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_pycollect_makeitem(
    collector: pytest.Collector, obj: object
) -> Generator[None, Any, Any]:
    """Leave out slow tests at once where none are run: Schemathesis makes their cases first."""
    found = yield
    marks = getattr(obj, "pytestmark", ())
    is_slow = isinstance(marks, list) and any(mark.name == "slow" for mark in marks)
    return [] if is_slow and collector.config.option.markexpr == "not slow" else found


@define
class Sender:
    """Sends requests as they are given, with the cookie of a login."""

    port: int
    cookie: str

    def send(
        self,
        method: str,
        target: str,
        body: bytes | None = None,
        *,
        content_type: str | None = "application/json",
        headers: dict[str, str] | None = None,
    ) -> Answer:
        connection = HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE_S)
        try:
            connection.putrequest(method, target)
            connection.putheader("Cookie", self.cookie)
            if body is not None:
                connection.putheader("Content-Length", str(len(body)))
                if content_type is not None:
                    connection.putheader("Content-Type", content_type)
            for name, value in (headers or {}).items():
                connection.putheader(name, value)
            connection.endheaders(body)
            answer = connection.getresponse()
            given = {name.lower(): value for name, value in answer.getheaders()}
            return Answer(answer.status, given, answer.read())
        finally:
            connection.close()


@pytest.fixture(scope="package")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    with running(tmp_path_factory.mktemp("interface")) as daemon:
        client = daemon.client()
        client.add_website("example.com")
        client.add_website("taken.example.com")
        yield daemon
        assert "Traceback" not in daemon.log


@pytest.fixture(scope="package")
def sender(daemon: Daemon) -> Sender:
    cookie = daemon.client().cookie
    assert cookie is not None
    return Sender(daemon.port, cookie)
