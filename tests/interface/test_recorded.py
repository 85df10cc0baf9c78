"""Every response is byte for byte as recorded, except for what differs between runs.

    MEDAMAD_RECORD=1 .venv/bin/python -m pytest tests/interface/test_recorded.py

records all of them again.
"""

import json
import os
import random
import re
import signal
import socket
import time
from base64 import b64encode
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime, timedelta
from difflib import unified_diff
from functools import cache
from gzip import decompress
from io import BufferedReader
from pathlib import Path
from textwrap import dedent
from typing import Any, TypeAlias

import pytest
import yaml
from attrs import define, field, frozen
from support.daemon import finished_fork
from support.forked_process import ForkedProcess, fork
from support.recorded_requests import PASSWORD, RECORDED, SESSIONS, USERNAME, Ask, Import

pytestmark = pytest.mark.daemon

FILE = Path(__file__).with_name("recorded_responses.json")
IS_RECORDING = bool(os.environ.get("MEDAMAD_RECORD"))
PATIENCE_S = 120.0
MOST_TIMES = 25
LENGTH = re.compile(r"(?<=^Content-Length: )\d+$")
DAY_S = 86_400

Record: TypeAlias = dict[str, Any]


@frozen
class Answer:
    """A response as it was received, with `body` free of the transfer coding."""

    status: str
    headers: Sequence[tuple[str, str]]
    body: bytes

    @property
    def code(self) -> int:
        code = self.status.partition(" ")[2][:3]
        return int(code) if code.isdecimal() else 0

    @property
    def text(self) -> str:
        body = decompress(self.body) if self.header("Content-Encoding") == "gzip" else self.body
        try:
            return body.decode("utf-8")
        except UnicodeDecodeError:
            return f"<base64> {b64encode(body).decode()}"

    @property
    def whole(self) -> str:
        return "\n".join((*(f"{name}: {value}" for name, value in self.headers), "", self.text))

    def header(self, name: str) -> str | None:
        return next((value for key, value in self.headers if key.lower() == name.lower()), None)


@define
class Wire:
    """Sends over one connection for as long as the daemon says that it stays open."""

    port: int
    _socket: socket.socket | None = None
    _file: BufferedReader | None = None

    def exchange(self, sent: bytes, method: str, answers: int = 1) -> list[Answer]:
        """Send data and return the response, or the reason why there is none."""
        if self._socket is None:
            self._socket = socket.create_connection(("127.0.0.1", self.port), PATIENCE_S)
            self._file = self._socket.makefile("rb")
        assert self._file is not None
        read = []
        try:
            self._socket.sendall(sent)
            read += [_read(self._file, method) for _ in range(answers)]
            is_last = read[-1].header("Connection") == "close"
            if is_last or not sent.partition(b"\r\n")[0].endswith(b"1.1"):
                assert self._file.read() == b"", "something came after the last answer"
                self.close()
        except (AssertionError, OSError, ValueError) as error:
            self.close()
            if IS_RECORDING:
                raise
            # An error after the last response is recorded in its place.
            del read[answers - 1 :]
            read += [Answer(f"No answer: {error}", (), b"")] * (answers - len(read))
        return read

    def close(self) -> None:
        if self._socket is not None and self._file is not None:
            self._file.close()
            self._socket.close()
            self._socket = None


def _read(file: BufferedReader, method: str) -> Answer:
    status = _line(file)
    headers = []
    while line := _line(file):
        name, _, value = line.partition(": ")
        headers.append((name, value))
    answer = Answer(status, headers, b"")
    length = answer.header("Content-Length")
    if method == "HEAD" or answer.code in (100, 204, 304):
        return answer
    if answer.header("Transfer-Encoding") == "chunked":
        body = b"".join(_chunks(file))
    elif length is None:
        body = file.read()
    else:
        body = file.read(int(length))
        assert len(body) == int(length), f"{len(body)} bytes came of {length}"
    return Answer(status, headers, body)


def _line(file: BufferedReader) -> str:
    line = file.readline().decode("latin-1")
    assert line.endswith("\r\n"), f"the connection was closed after {line!r}"
    return line[:-2]


def _chunks(file: BufferedReader) -> Iterator[bytes]:
    while size := int(_line(file), 16):
        yield file.read(size)
        assert _line(file) == ""
    assert _line(file) == ""


@define
class Visit:
    """Sends the requests of a daemon one after the other, and keeps what it is given."""

    wire: Wire
    now: datetime
    taken: dict[str, str] = field(factory=dict)

    def ask(self, ask: Ask) -> list[Answer]:
        sent = self._encoded(ask)
        for _ in range(MOST_TIMES):
            answers = self.wire.exchange(sent, ask.method, ask.answers)
            if ask.until in (0, answers[-1].code):
                break
        for name, pattern in ask.takes.items():
            if found := re.search(pattern, answers[-1].whole):
                self.taken[name] = found[1]
        return answers

    def _encoded(self, ask: Ask) -> bytes:
        if ask.raw:
            return ask.raw.encode("latin-1")
        body, headers = ask.body, {"Host": "localhost"}
        if isinstance(body, Mapping):
            headers["Content-Type"] = "application/json"
            body = json.dumps(body, default=dict)
        text = self._filled(str(body or "")).encode()
        if body is not None:
            headers["Content-Length"] = str(len(text))
        headers |= {**SESSIONS[ask.session], **ask.headers}
        head = [f"{ask.method} {ask.path} {ask.version}"]
        head += [f"{name}: {value}" for name, value in headers.items()]
        return self._filled("\r\n".join((*head, "", ""))).encode("latin-1") + text

    def _filled(self, text: str) -> str:
        for name, value in {**self.taken, **self._dates()}.items():
            text = text.replace(f"<{name}>", value)
        return text

    def _dates(self) -> Mapping[str, str]:
        days = {f"day-{ago}": f"{self.now - timedelta(days=ago):%Y-%m-%d}" for ago in range(10)}
        return {**days, "http today": _http_day(self.now)}

    def record(self, ask: Ask, answer: Answer) -> Record:
        """Return a response without what differs between runs."""
        text = answer.text
        if ask.is_built and text and not text.startswith('{"error":'):
            text = "<built>"
        changes = ask.is_built or answer.header("Content-Encoding") is not None
        if "/usage" in ask.path:
            figures = r'"(usage|cores|threads|used|total|cpu|memory|uptime)":[\d.e+-]+'
            text = re.sub(figures, r'"\1":<figure>', text)
            text = re.sub(r'"(version|commit)":"[^"]*"', r'"\1":"<\1>"', text)
            changes = True
        if ask.path == "/metrics":
            exact = "medamad_(?:hits_accepted|hits_refused|websites|ready)"
            text = re.sub(rf"(?m)^((?!#|{exact}).*) \S+$", r"\1 <figure>", text)
            text = re.sub(r'(version|commit)="[^"]*"', r'\1="<\1>"', text)
            text = re.sub(r"(?m)^(# HELP \S+) .*$", r"\1 <text>", text)
            changes = True
        headers = [f"{name}: {self._header(name, value)}" for name, value in answer.headers]
        if changes:
            headers = [LENGTH.sub("<length>", header) for header in headers]
        return {"status": answer.status, "headers": headers, "body": self._blanked(text)}

    def _header(self, name: str, value: str) -> str:
        http_date = r"\w{3}, \d\d \w{3} \d{4} \d\d:\d\d:\d\d GMT"
        match name:
            case "Date" if re.fullmatch(http_date, value):
                return "<date>"
            case "X-Api-Commit" if re.fullmatch(r"[\w.+-]+", value):
                return "<commit>"
            case "ETag" if re.fullmatch(r'"[0-9a-f]{20}"', value):
                return '"<etag>"'
            case "Retry-After" if re.fullmatch(r"[1-9]|[1-5]\d|60", value):
                return "<seconds>"
            case "Last-Modified":
                for day in (self.now, self.now - timedelta(days=1)):
                    value = value.replace(_http_day(day), "<day>")
        return self._blanked(value)

    def _blanked(self, text: str) -> str:
        for name, value in sorted(self.taken.items(), key=lambda item: -len(item[1])):
            text = text.replace(value, f"<{name}>")
        for name, value in self._dates().items():
            text = text.replace(value, f"<{name}>")
        return re.sub(r"(?<![\d.])\d{10}(?![\d.])", self._moment, text)

    def _moment(self, found: re.Match[str]) -> str:
        second, now = int(found[0]), int(self.now.timestamp())
        if second == now // DAY_S * DAY_S:
            return "<today>"
        return "<now>" if abs(second - now) < 3_600 else found[0]


def _http_day(day: datetime) -> str:
    # strftime would write it in the language of the machine.
    weekday = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")[day.weekday()]
    months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
    return f"{weekday}, {day.day:02} {months[day.month - 1]} {day.year}"


@contextmanager
def daemon(folder: Path, configuration: str, files: Mapping[str, str]) -> Iterator[int]:
    """Run a daemon on a new store; return its port."""
    for name, text in {**files, "medamad.toml": dedent(configuration)}.items():
        (folder / name).write_text(text, "utf-8")
    port = _free_port()
    listen = f"tcp:{port}:interface=127.0.0.1"
    command = ["run", "--config", "medamad.toml", "--data", "data", "--listen", listen]
    environ = os.environ | {"MEDAMAD_USERNAME": USERNAME, "MEDAMAD_PASSWORD": PASSWORD}
    with Path(os.devnull).open("rb") as nothing, (folder / "log.txt").open("ab") as log:
        process = fork(command, (nothing, log, log), folder, environ)
    try:
        _await(process, port, folder / "log.txt")
        yield port
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(PATIENCE_S)
        finally:
            process.kill()
    assert "Traceback" not in (folder / "log.txt").read_text("utf-8")


def _free_port() -> int:
    """Return an unused port below the ephemeral range."""
    while True:
        port = random.randrange(12_000, 20_000)  # noqa: S311
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port


def _await(process: ForkedProcess, port: int, log: Path) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while True:
        with suppress(OSError), socket.create_connection(("127.0.0.1", port), PATIENCE_S):
            return
        logged = log.read_text("utf-8", "replace")
        assert process.poll() is None, f"the daemon stopped:\n{logged}"
        assert time.monotonic() < deadline, f"the daemon does not answer:\n{logged}"
        time.sleep(0.05)


def _import(folder: Path, given: Import) -> None:
    for name, text in given.files.items():
        (folder / name).write_text(text, "utf-8")
    command = ["import", "--data", "data", "--website", given.website, *given.files]
    ran = finished_fork(command, folder)
    assert ran.returncode == 0, ran.stderr


@frozen
class Seen:
    """The responses of a named daemon, without what differs between runs."""

    records: Mapping[str, Record]
    description: str
    """The document of the interface, as it was served."""


def _seen(name: str, folder: Path) -> Seen:
    recorded = RECORDED[name]
    records: dict[str, Record] = {}
    description = ""
    with daemon(folder, recorded.configuration, recorded.files) as port:
        visit = Visit(Wire(port), _a_day())
        try:
            for step in recorded.steps:
                if isinstance(step, Import):
                    _import(folder, step)
                    continue
                for number, answer in enumerate(visit.ask(step), 1):
                    records[_numbered(step, number)] = visit.record(step, answer)
                    if (step.method, step.path) == ("GET", "/openapi.yaml"):
                        description = description or answer.text
        finally:
            visit.wire.close()
    return Seen(records, description)


def _a_day() -> datetime:
    """Return the time, once the day is not about to end."""
    while (now := datetime.now(UTC)).hour == 23 and now.minute >= 58:
        time.sleep(1)
    return now


def _numbered(ask: Ask, number: int) -> str:
    return f"{ask.name}, {number}" if ask.answers > 1 else ask.name


CASES = [
    (name, _numbered(ask, number))
    for name, recorded in RECORDED.items()
    for ask in recorded.asked
    for number in range(1, ask.answers + 1)
]


@cache
def _recording() -> dict[str, dict[str, Record]]:
    found: dict[str, dict[str, Record]] = json.loads(FILE.read_text("utf-8"))
    return found


@pytest.fixture(scope="module")
def seen_of(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Seen]:
    """Return the responses of a daemon, which are requested once."""
    known: dict[str, Seen | Exception] = {}

    def seen_of(name: str) -> Seen:
        if name not in known:
            try:
                known[name] = _seen(name, tmp_path_factory.mktemp("recorded"))
            except Exception as error:
                known[name] = error
                raise
        seen = known[name]
        if isinstance(seen, Exception):
            pytest.fail(f"{name} could not be asked: {seen!r}", pytrace=False)
        return seen

    return seen_of


@pytest.fixture(scope="module", autouse=True)
def _recorded_anew(seen_of: Callable[[str], Seen]) -> None:
    if IS_RECORDING:
        records = {name: seen_of(name).records for name in RECORDED}
        FILE.write_text(json.dumps(records, indent=1, ensure_ascii=False) + "\n", "utf-8")


def _shown(record: Record) -> list[str]:
    """Return the lines of a response, without the text of errors, which may change."""
    headers, body = record["headers"], record["body"]
    if body.startswith('{"error":'):
        body = re.sub(r'"message":"(?:[^"\\]|\\.)*"', '"message":"<message>"', body)
        headers = [LENGTH.sub("<length>", header) for header in headers]
    return [
        record["status"],
        *headers,
        "",
        *body.replace("},{", "},\n{").split("\n"),
    ]


@pytest.mark.parametrize(("of", "name"), CASES)
def test_every_response_is_as_recorded(seen_of: Callable[[str], Seen], of: str, name: str) -> None:
    recorded = _recording()[of][name]
    diff = list(
        unified_diff(
            _shown(recorded),
            _shown(seen_of(of).records[name]),
            "recorded",
            "seen",
            n=50,
            lineterm="",
        )
    )
    assert not diff, f"{of}: {name}\n" + "\n".join(diff)


def test_recordings_and_requests_match() -> None:
    assert [(of, name) for of, records in _recording().items() for name in records] == CASES


def test_names_are_unique() -> None:
    assert len(CASES) == len(set(CASES))


def test_every_operation_is_recorded(seen_of: Callable[[str], Seen]) -> None:
    asked = [
        (ask.method, ask.path.partition("?")[0].removeprefix("/api"))
        for ask in RECORDED["as it is"].asked
    ]
    for path, operations in yaml.load(seen_of("as it is").description, yaml.CSafeLoader)[
        "paths"
    ].items():
        pattern = re.sub(r"\{\w+\}", "[^/]+", path)
        for method in operations.keys() & {"get", "post", "patch", "put", "delete"}:
            assert any(
                used == method.upper() and re.fullmatch(pattern, place) for used, place in asked
            ), f"{method} {path}"
