"""What is sent to webhooks: a body and headers for each format, and how they are signed."""

import hashlib
import hmac
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, Final, TypeAlias

import msgspec
from attrs import frozen

from medamad.domain.alerts import Facts, Rule, shown

Headers: TypeAlias = tuple[tuple[str, str], ...]

TIMESTAMP: Final = "X-Medamad-Timestamp"
SIGNATURE: Final = "X-Medamad-Signature"
_MOST_OF_DISCORD: Final = 2_000
"""Characters of a message there."""


@frozen(kw_only=True)
class Message:
    """What is sent about a rule. `time` in Unix seconds.

    `event` is "began", "ended" or "test"; `website` a hostname, None for the service; `link` where
    the dashboard shows it, "" if the address of the service is unknown.
    """

    id: str
    event: str
    time: int
    website: str | None
    rule: Rule
    facts: Facts
    text: str
    link: str


@frozen
class Payload:
    """The content of a request to a webhook."""

    body: bytes
    headers: Headers


def payload_of(message: Message, secret: bytes, now: int) -> Payload:
    """Return what is sent. `secret` signs it; `now`, in Unix seconds, is when."""
    return _PAYLOADS[message.rule.format](message, secret, now)


def _as_json(message: Message, secret: bytes, now: int) -> Payload:
    rule = {name: value for name, value in shown(message.rule).items() if name != "url"}
    moment = datetime.fromtimestamp(message.time, UTC).isoformat().replace("+00:00", "Z")
    body = _encoded(
        {
            "id": message.id,
            "event": message.event,
            "time": moment,
            "website": message.website,
            "alert": rule,
            "facts": message.facts,
            "text": message.text,
            "link": message.link or None,
        }
    )
    timestamp = str(now)
    return Payload(
        body,
        (
            ("Content-Type", "application/json"),
            (TIMESTAMP, timestamp),
            (SIGNATURE, f"sha256={signature(secret, timestamp, body)}"),
        ),
    )


def signature(secret: bytes, timestamp: str, body: bytes) -> str:
    """Return the HMAC-SHA256 of a timestamp, a full stop and a body, in hexadecimal."""
    signed = b"%b.%b" % (timestamp.encode("ascii"), body)
    return hmac.new(secret, signed, hashlib.sha256).hexdigest()


def _as_slack(message: Message, _secret: bytes, _now: int) -> Payload:
    text = _with_link(message)
    for character, escaped in (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;")):
        text = text.replace(character, escaped)
    return Payload(_encoded({"text": text}), _JSON)


def _as_discord(message: Message, _secret: bytes, _now: int) -> Payload:
    # Nobody is to be notified by a text that is made of names which visitors choose.
    text = _with_link(message)[:_MOST_OF_DISCORD]
    return Payload(_encoded({"content": text, "allowed_mentions": {"parse": []}}), _JSON)


def _as_ntfy(message: Message, _secret: bytes, _now: int) -> Payload:
    link: Headers = (("Click", message.link),) if message.link else ()
    plain = (("Content-Type", "text/plain; charset=utf-8"),)
    return Payload(message.text.encode("utf-8", "replace"), plain + link)


_JSON: Final = (("Content-Type", "application/json"),)
_PAYLOADS: Final[Mapping[str, Callable[[Message, bytes, int], Payload]]] = {
    "json": _as_json,
    "slack": _as_slack,
    "discord": _as_discord,
    "ntfy": _as_ntfy,
}


def _with_link(message: Message) -> str:
    return f"{message.text} {message.link}".strip()


def _encoded(content: Mapping[str, Any]) -> bytes:
    return msgspec.json.encode(content)
