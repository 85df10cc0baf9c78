"""What is sent to webhooks, as each receiver documents it."""

import hashlib
import hmac

import msgspec
from attrs import evolve

from medamad.alerts.payloads import Message, payload_of
from medamad.domain.alerts import Rule

RULE = Rule(id="rule", kind="referrer", threshold=10, url="https://example.com/hook/T0P")
MESSAGE = Message(
    id="notice",
    event="began",
    time=1_750_000_000,
    website="example.com",
    rule=RULE,
    facts={"referrer": "a<b>&c", "visits": 11},
    text="A new referrer: a<b>&c @everyone",
    link="https://stats.example.com/dashboard/websites/example.com",
)
SECRET = b"secret"


def written_as(name: str, message: Message = MESSAGE) -> tuple[bytes, dict[str, str]]:
    rule = evolve(message.rule, format=name)
    payload = payload_of(evolve(message, rule=rule), SECRET, 1_750_000_100)
    return payload.body, dict(payload.headers)


def test_json_is_signed_with_the_time() -> None:
    body, headers = written_as("json")
    assert msgspec.json.decode(body) == {
        "id": "notice",
        "event": "began",
        "time": "2025-06-15T15:06:40Z",
        "website": "example.com",
        "alert": {"id": "rule", "kind": "referrer", "threshold": 10, "format": "json"},
        "facts": {"referrer": "a<b>&c", "visits": 11},
        "text": "A new referrer: a<b>&c @everyone",
        "link": "https://stats.example.com/dashboard/websites/example.com",
    }
    signed = hmac.new(SECRET, b"1750000100." + body, hashlib.sha256).hexdigest()
    assert headers == {
        "Content-Type": "application/json",
        "X-Medamad-Timestamp": "1750000100",
        "X-Medamad-Signature": f"sha256={signed}",
    }


def test_slack_and_discord_get_a_text_in_which_names_are_only_names() -> None:
    link = "https://stats.example.com/dashboard/websites/example.com"
    body, headers = written_as("slack")
    assert headers == {"Content-Type": "application/json"}
    text = f"A new referrer: a&lt;b&gt;&amp;c @everyone {link}"
    assert msgspec.json.decode(body) == {"text": text}
    body, headers = written_as("discord")
    assert headers == {"Content-Type": "application/json"}
    assert msgspec.json.decode(body) == {
        "content": f"A new referrer: a<b>&c @everyone {link}",
        "allowed_mentions": {"parse": []},
    }
    long, _ = written_as("discord", evolve(MESSAGE, text="a" * 3_000))
    assert msgspec.json.decode(long)["content"] == "a" * 2_000


def test_ntfy_gets_the_text_and_the_link_to_open() -> None:
    body, headers = written_as("ntfy")
    assert body == b"A new referrer: a<b>&c @everyone"
    assert headers == {
        "Content-Type": "text/plain; charset=utf-8",
        "Click": "https://stats.example.com/dashboard/websites/example.com",
    }


def test_without_an_address_of_the_service_there_is_no_link() -> None:
    without = evolve(MESSAGE, link="", website=None)
    assert msgspec.json.decode(written_as("json", without)[0])["link"] is None
    assert msgspec.json.decode(written_as("slack", without)[0])["text"].endswith("@everyone")
    assert "Click" not in written_as("ntfy", without)[1]
