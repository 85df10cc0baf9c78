"""ClickHouse's HTTP interface, for threads: statements, results as columns, and rows to insert.

Texts are never part of a statement: they are typed parameters, sets that are uploaded beside it, or
rows. What is, the names of a database and a cluster, is escaped by `quoted`.
"""

import io
import ssl
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from http.client import HTTPConnection, HTTPException, HTTPResponse, HTTPSConnection
from secrets import token_hex
from socket import socket
from threading import Lock
from types import MappingProxyType
from typing import Any, Final, TypeAlias
from urllib.parse import SplitResult, urlencode, urlsplit

from attrs import define, field, frozen

from medamad.clickhouse.native import Columns, NotNative, Values, decode_blocks, encode_block

Parameter: TypeAlias = str | int

_CONNECT_S: Final = 5.0
"""How long a server may take to accept a connection."""
_CHECKED_EACH_S: Final = 0.1
"""How often it is asked whether somebody still waits for a result."""

READING: Final[Mapping[str, Parameter]] = MappingProxyType(
    {
        "readonly": 2,
        # An error after the first bytes would otherwise be a body that ends early.
        "wait_end_of_query": 1,
        "cancel_http_readonly_queries_on_client_close": 1,
        # The partition follows from the key, so a row is never in two of them.
        "do_not_merge_across_partitions_select_final": 1,
        # Of a row's versions, only the duration differs, and no index has it.
        "use_skip_indexes_if_final": 1,
        # Rows that belong together are on one shard.
        "distributed_product_mode": "local",
        # A shard that is down is an error, never a smaller figure.
        "skip_unavailable_shards": 0,
        # A name in a condition is that of a column, whatever a result is called.
        "prefer_column_name_to_alias": 1,
    }
)
"""The settings of every query."""

WRITING: Final[Mapping[str, Parameter]] = MappingProxyType(
    {
        "wait_end_of_query": 1,
        "async_insert": 0,
        # Returns when the shards have the rows, not when the first server has.
        "insert_distributed_sync": 1,
    }
)
"""The settings of every insert."""

UNAVAILABLE: Final = frozenset(
    {
        159,  # TIMEOUT_EXCEEDED
        202,  # TOO_MANY_SIMULTANEOUS_QUERIES
        209,  # SOCKET_TIMEOUT
        210,  # NETWORK_ERROR
        225,  # NO_ZOOKEEPER
        241,  # MEMORY_LIMIT_EXCEEDED
        242,  # TABLE_IS_READ_ONLY
        279,  # ALL_CONNECTION_TRIES_FAILED
        285,  # TOO_FEW_LIVE_REPLICAS
        286,  # UNSATISFIED_QUORUM_FOR_PREVIOUS_WRITE
        319,  # UNKNOWN_STATUS_OF_INSERT
        999,  # KEEPER_EXCEPTION
    }
)
"""The codes of errors that pass by themselves."""

_OF_ONE_SERVER: Final = frozenset(
    {
        202,  # TOO_MANY_SIMULTANEOUS_QUERIES
        210,  # NETWORK_ERROR
        225,  # NO_ZOOKEEPER
        242,  # TABLE_IS_READ_ONLY
        279,  # ALL_CONNECTION_TRIES_FAILED
        999,  # KEEPER_EXCEPTION
    }
)
"""Those that another server may not have: what it reaches, and what it has to do, differ."""


class ClickHouseError(Exception):
    """A statement failed."""


class Unavailable(ClickHouseError):
    """No server answered, or one that cannot at present. Whether an insert took effect is unknown.

    `code` is that of ClickHouse, 0 if there was no answer.
    """

    def __init__(self, message: str, code: int = 0) -> None:
        super().__init__(message)
        self.code = code


class _TimedOut(Unavailable):
    """A server did not answer in time, and may still be at the statement."""


class Refused(ClickHouseError):
    """A server refused a statement: ClickHouse's code, and its message."""

    def __init__(self, message: str, code: int) -> None:
        super().__init__(message)
        self.code = code


@frozen(kw_only=True)
class Connecting:
    """How servers are reached: they are tried in order, from the one that answered last."""

    urls: Sequence[str]
    """`http://host:8123` or `https://host:8443`."""
    database: str = "medamad"
    user: str = "default"
    password: str = field(default="", repr=False)
    ca_file: str | None = None
    """Certificates of further authorities, or of the servers themselves."""
    timeout_s: float = 30.0
    """How long a server may take to answer a statement."""
    max_memory_bytes: int = 8 << 30
    """The memory that a query may take on each server."""


@frozen(eq=False)
class Upload:
    """A table that is sent with a query, for `x IN name`: its types and its columns, by name."""

    types: Mapping[str, str]
    columns: Mapping[str, Values]


def quoted(name: str) -> str:
    """Return the name of a database, table or cluster as an identifier of SQL."""
    return "`" + name.replace("\\", "\\\\").replace("`", "\\`") + "`"


def _parameter(value: Parameter) -> str:
    """Return a parameter as ClickHouse reads it: with the escapes of tab-separated values."""
    text = str(value)
    for character, escape in _ESCAPES.items():
        text = text.replace(character, escape)
    return text


_ESCAPES: Final = {"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r", "\0": "\\0"}


def _no_check() -> None:
    """Somebody waits for the result."""


@define(eq=False)
class Client:
    """Sends statements. Any thread may use it; each statement has a connection to itself."""

    connecting: Connecting
    inserted_bytes: int = field(default=0, init=False)
    """How many bytes of rows were inserted."""
    _tls: ssl.SSLContext | None = field(init=False, default=None)
    _idle: list[tuple[str, HTTPConnection]] = field(factory=list, init=False)
    _lock: Lock = field(factory=Lock, init=False)
    _first: int = field(default=0, init=False)
    """Which of the servers answered last."""

    def __attrs_post_init__(self) -> None:
        if any(urlsplit(url).scheme == "https" for url in self.connecting.urls):
            self._tls = ssl.create_default_context(cafile=self.connecting.ca_file)

    def query(
        self,
        statement: str,
        *,
        uploads: Mapping[str, Upload] = MappingProxyType({}),
        parameters: Mapping[str, Parameter] = MappingProxyType({}),
        settings: Mapping[str, Parameter] = MappingProxyType({}),
        check: Callable[[], None] = _no_check,
    ) -> Columns:
        """Return the columns of a SELECT. Raises ClickHouseError, and whatever `check` raises.

        `parameters` are those of `{name:Type}`. `check` is called while the result is awaited, and
        ends the query by raising.
        """
        given = {
            "max_execution_time": int(self.connecting.timeout_s),
            "max_memory_usage": self.connecting.max_memory_bytes,
            **READING,
            **settings,
        }
        fields = {f"param_{name}": _parameter(value) for name, value in parameters.items()}
        statement += " FORMAT Native"
        if not uploads and not fields:
            return _decoded(self._post(given, {}, statement.encode(), check))
        for name, upload in uploads.items():
            structure = ", ".join(f"{quoted(column)} {t}" for column, t in upload.types.items())
            given |= {f"{name}_format": "Native", f"{name}_structure": structure}
        files = {
            name: encode_block(upload.types, upload.columns) for name, upload in uploads.items()
        }
        boundary = token_hex(16)
        body = b"".join(_multipart(boundary, {**fields, "query": statement}, files))
        headers = {"Content-Type": f"multipart/form-data; boundary={boundary}"}
        return _decoded(self._post(given, headers, body, check))

    def insert(
        self,
        table: str,
        types: Mapping[str, str],
        columns: Mapping[str, Values],
        *,
        settings: Mapping[str, Parameter] = MappingProxyType({}),
    ) -> None:
        """Insert rows into a table. Raises ClickHouseError.

        After `Unavailable`, nobody knows whether the rows are there: send them again.
        """
        names = ", ".join(map(quoted, types))
        statement = f"INSERT INTO {self.table(table)} ({names}) FORMAT Native"
        body = encode_block(types, columns)
        self._post({"query": statement, **WRITING, **settings}, {}, body, _no_check)
        self.inserted_bytes += len(body)

    def run(
        self, statement: str, *, settings: Mapping[str, Parameter] = MappingProxyType({})
    ) -> None:
        """Run a statement without a result. Raises ClickHouseError."""
        self._post({"wait_end_of_query": 1, **settings}, {}, statement.encode(), _no_check)

    def table(self, name: str) -> str:
        """Return the name of a table of our database as SQL has it."""
        return f"{quoted(self.connecting.database)}.{quoted(name)}"

    def close(self) -> None:
        """Close the connections that are idle."""
        with self._lock:
            idle, self._idle = self._idle, []
        for _, connection in idle:
            connection.close()

    def _post(
        self,
        settings: Mapping[str, Parameter],
        headers: Mapping[str, str],
        body: bytes,
        check: Callable[[], None],
    ) -> bytes:
        """Send a statement to the first server that answers, and return the body of the answer.

        Another one is asked only where that can help: not for a statement that is wrong, or that
        takes too long, which would then run twice.
        """
        urls = self.connecting.urls
        failed: Unavailable | None = None
        begin = self._first
        for place in (*range(begin, len(urls)), *range(begin)):
            try:
                found = self._post_to(urls[place], settings, headers, body, check)
            except _TimedOut:
                # The next statement may have more luck there.
                self._first = (place + 1) % len(urls)
                raise
            except Unavailable as error:
                if error.code and error.code not in _OF_ONE_SERVER:
                    raise
                failed = error
                continue
            self._first = place
            return found
        raise failed or Unavailable("there is no server")

    def _post_to(
        self,
        url: str,
        settings: Mapping[str, Parameter],
        headers: Mapping[str, str],
        body: bytes,
        check: Callable[[], None],
    ) -> bytes:
        at = urlsplit(url)
        target = f"{at.path or '/'}?{urlencode(settings)}"
        sent: dict[str, str | bytes] = {
            "X-ClickHouse-User": self.connecting.user.encode(),
            "X-ClickHouse-Key": self.connecting.password.encode(),
            **headers,
        }
        for connection in self._connections(url, at):
            is_new = connection.sock is None
            try:
                if is_new:
                    # A machine that is off does not refuse a connection: it says nothing.
                    connection.timeout = min(_CONNECT_S, self.connecting.timeout_s)
                    connection.connect()
                connection.timeout = self.connecting.timeout_s
                connection.sock.settimeout(connection.timeout)
                connection.request("POST", target, body, sent)
                response = _response(connection, check)
                found = response.read()
            except (OSError, HTTPException) as error:
                connection.close()
                message = f"{at.netloc}: {error or type(error).__name__}"
                if isinstance(error, _NoAnswer):
                    raise _TimedOut(message) from error
                # A server closes idle connections: it has then not begun with the statement.
                if is_new:
                    raise Unavailable(message) from error
                continue
            except BaseException:
                connection.close()
                raise
            if response.will_close:
                connection.close()
            else:
                with self._lock:
                    self._idle.append((url, connection))
            _check_status(at.netloc, response, found)
            return found
        raise AssertionError

    def _connections(self, url: str, at: SplitResult) -> Iterator[HTTPConnection]:
        """Return an idle connection, if there is one, and one that is not connected yet."""
        with self._lock:
            found = next((each for each in self._idle if each[0] == url), None)
            if found is not None:
                self._idle.remove(found)
        if found is not None:
            yield found[1]
        host = at.hostname or ""
        if at.scheme == "https":
            yield HTTPSConnection(host, at.port, context=self._tls)
        else:
            yield HTTPConnection(host, at.port)


def _multipart(
    boundary: str, fields: Mapping[str, str], files: Mapping[str, bytes]
) -> Iterator[bytes]:
    """Return the pieces of a form. No name here has a character that would need an escape."""
    for name, text in fields.items():
        yield f'--{boundary}\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n'.encode()
        yield text.encode("utf-8", "surrogateescape") + b"\r\n"
    for name, data in files.items():
        head = f'--{boundary}\r\nContent-Disposition: form-data; name="{name}"; filename="{name}"'
        yield f"{head}\r\nContent-Type: application/octet-stream\r\n\r\n".encode()
        yield data + b"\r\n"
    yield f"--{boundary}--\r\n".encode()


def _decoded(body: bytes) -> Columns:
    try:
        return decode_blocks(body)
    except NotNative as error:
        raise Unavailable(f"a result cannot be read: {error}") from error


class _NoAnswer(TimeoutError):
    """An answer takes too long."""


@define(eq=False, slots=False)
class _Answer(io.RawIOBase):
    """The answer to a statement, as it is received. `check` is called while it is awaited.

    It is read like this, and not after a poll, as of TLS there are bytes that are no answer yet.
    """

    _socket: socket
    _check: Callable[[], None]
    _timeout_s: float
    _keeps_open: io.BufferedReader = field(init=False)
    """HTTPConnection closes the socket before an answer that ends with it is read."""

    def __attrs_post_init__(self) -> None:
        self._keeps_open = self._socket.makefile("rb")

    def close(self) -> None:
        """Close the socket if the connection has done so."""
        self._keeps_open.close()
        super().close()

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any, /) -> int:
        """Wait for the next bytes. Raises TimeoutError, and whatever `check` raises."""
        until = time.monotonic() + self._timeout_s
        while True:
            try:
                return self._socket.recv_into(buffer)
            except TimeoutError:
                self._check()
                if time.monotonic() > until:
                    raise _NoAnswer("timed out") from None

    def makefile(self, _mode: str) -> io.BufferedReader:
        """Return what HTTPResponse reads."""
        return io.BufferedReader(self)


def _response(connection: HTTPConnection, check: Callable[[], None]) -> HTTPResponse:
    """Wait until a response begins. Raises TimeoutError, and whatever `check` raises."""
    timeout_s = connection.timeout or 0.0
    connection.sock.settimeout(_CHECKED_EACH_S)
    answer = _Answer(connection.sock, check, timeout_s)
    connection.response_class = lambda _, **how: HTTPResponse(answer, **how)  # type: ignore[assignment, arg-type]
    return connection.getresponse()


def _check_status(server: str, response: HTTPResponse, body: bytes) -> None:
    """Raise ClickHouseError unless a statement succeeded."""
    code = response.getheader("X-ClickHouse-Exception-Code")
    if response.status == 200 and code is None:  # noqa: PLR2004 - OK
        return
    message = body.decode("utf-8", "replace").strip()
    number = int(code) if code and code.isdecimal() else _code_in(message)
    text = f"{server}: {message or response.reason}"
    if number in UNAVAILABLE or (not number and response.status >= 500):  # noqa: PLR2004
        raise Unavailable(text, number)
    raise Refused(text, number)


def _code_in(message: str) -> int:
    """Return the code in `Code: 279. …`, which old servers have in the message alone."""
    head, _, rest = message.partition("Code: ")
    digits = rest[: len(rest) - len(rest.lstrip("0123456789"))]
    return int(digits) if not head and digits else 0
