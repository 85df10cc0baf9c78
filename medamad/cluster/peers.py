"""What collectors say to each other: messages over HTTP, and the client that sends them.

A message is the body of a `POST /cluster`, MessagePack as its answer is, and comes with the secret
that all collectors have. The client is for threads.
"""

import ssl
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from typing import Any, Final, TypeAlias, TypeVar
from urllib.parse import urlsplit

import msgspec
from attrs import define, evolve, field
from msgspec import Struct
from msgspec.structs import replace

from medamad.domain.errors import BadRequest
from medamad.domain.hits import Event, Hit, Unload, View
from medamad.storage.request_totals import RequestSources
from medamad.storage.shared_settings import Epoch, SharedSettings

PATH: Final = "/cluster"
_TIMEOUT_S: Final = 5.0
_CONNECT_S: Final = 2.0
_OK: Final = 200

T = TypeVar("T")


class Greeting(Struct, frozen=True, tag=True, array_like=True):
    """Asks a collector who is the primary, and if it is that, for settings that have changed."""

    collector: int
    epoch: Epoch
    version: bytes
    """Of the settings that the sender has."""


class Greeted(Struct, frozen=True, array_like=True):
    """The answer to a greeting."""

    collector: int
    epoch: Epoch
    settings: SharedSettings | None
    """The primary's, if the sender has others; None from others."""
    lag_s: float = 0.0
    """For how long the first row that waits there to be sent has been stored, 0 if none does."""


class PassedHit(Struct, frozen=True, array_like=True):
    """A view, unload or event, with how long ago it arrived: clocks differ."""

    id: bytes
    age_ms: int
    view: View | None = None
    unload: Unload | None = None
    event: Event | None = None

    def arrived(self, now_ms: int) -> Hit:
        """Return the hit with times of this collector's clock; an event needs its view."""
        if self.view is not None:
            return evolve(self.view, time_ms=now_ms)
        if self.unload is not None:
            return replace(self.unload, time_ms=now_ms - self.age_ms)
        if self.event is None:
            raise BadRequest("a hit without a view, an unload and an event")
        happened_ms = self.event.happened_ms or (now_ms - self.age_ms if self.age_ms else 0)
        return replace(
            self.event,
            time_ms=now_ms,
            happened_ms=happened_ms,
            needs_view=True,
            passed_id=self.id,
        )


class PassedHits(Struct, frozen=True, tag=True, array_like=True):
    """Asks a collector to store views, and what it has the view of.

    The answer has the `Outcome` of each, "" for what could not be stored.
    """

    collector: int
    cluster: str
    hits: tuple[msgspec.Raw, ...]
    """Each a `PassedHit`."""


class RequestsWanted(Struct, frozen=True, tag=True, array_like=True):
    """Asks a collector which requests it has counted apart of a website; it answers with these."""

    cluster: str
    website: int
    kind: int
    """Of those of `medamad.storage.request_totals`."""
    first_day: int | None
    last_day: int | None


class UncountedWanted(Struct, frozen=True, tag=True, array_like=True):
    """Asks a collector which hits of a website it did not count; it answers with these."""

    cluster: str
    website: int


class RecentHitsWanted(Struct, frozen=True, tag=True, array_like=True):
    """Asks a collector which hits it had lately; it answers with these."""

    cluster: str


Message: TypeAlias = Greeting | PassedHits | RequestsWanted | UncountedWanted | RecentHitsWanted
"""What is asked."""

# Made here, since msgspec crashes if two threads prepare to decode the same type.
GREETED: Final = msgspec.msgpack.Decoder(Greeted)
"""Decodes the answer to a greeting."""
OUTCOMES: Final = msgspec.msgpack.Decoder(list[str])
"""Decodes the answer to hits."""
REQUESTS: Final = msgspec.msgpack.Decoder(RequestSources)
"""Decodes requests that are counted apart."""


class NotSent(Exception):
    """A message did not reach a collector."""


class Unanswered(NotSent):
    """A message was sent, and whether it had an effect is unknown."""


class Rejected(NotSent):
    """A collector refused a message, which had no effect."""


@define(eq=False, kw_only=True)
class Peer:
    """Another collector."""

    number: int
    url: str
    secret: str = field(repr=False)
    ca_file: str | None = None
    _tls: ssl.SSLContext | None = field(init=False, default=None)

    def __attrs_post_init__(self) -> None:
        if urlsplit(self.url).scheme == "https":
            self._tls = ssl.create_default_context(cafile=self.ca_file)

    def ask(self, message: Message, decoder: msgspec.msgpack.Decoder[T]) -> T:
        """Send a message and return its answer. Raises NotSent, Unanswered and Rejected."""
        body = msgspec.msgpack.encode(message)
        headers = {"Authorization": f"Bearer {self.secret}", "Content-Type": "application/msgpack"}
        connection = self._connection()
        try:
            try:
                connection.connect()
            except OSError as error:
                raise NotSent(self._reason(error)) from error
            if connection.sock is not None:
                connection.sock.settimeout(_TIMEOUT_S)
            try:
                connection.request("POST", PATH, body, headers)
                response = connection.getresponse()
                found = response.read()
            except (OSError, HTTPException) as error:
                raise Unanswered(self._reason(error)) from error
        finally:
            connection.close()
        if response.status != _OK:
            raise Rejected(f"{self.url}: {_message_in(found) or response.reason}")
        try:
            return decoder.decode(found)
        except msgspec.MsgspecError as error:
            raise Unanswered(f"{self.url}: another version of medamad: {error}") from error

    def _connection(self) -> HTTPConnection:
        at = urlsplit(self.url)
        if at.scheme == "https":
            return HTTPSConnection(
                at.hostname or "", at.port, timeout=_CONNECT_S, context=self._tls
            )
        return HTTPConnection(at.hostname or "", at.port, timeout=_CONNECT_S)

    def _reason(self, error: Exception) -> str:
        return f"{self.url}: {error or type(error).__name__}"


def _message_in(body: bytes) -> str:
    """Return the message of an error object, "" if it is none."""
    try:
        found: Any = msgspec.json.decode(body)
        return str(found["error"]["message"])
    except (msgspec.MsgspecError, KeyError, TypeError):
        return ""
