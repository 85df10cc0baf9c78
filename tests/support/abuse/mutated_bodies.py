"""Bodies of hits, changed at random: some so little that they come far, some beyond sense."""

import json
import random
from typing import Any, Final

WHOLE: Final[list[dict[str, Any]]] = [
    {
        "e": "load",
        "b": "beacon-1",
        "u": "https://example.com/a/b?utm_source=s&utm_medium=m&utm_campaign=c&ref=r#f",
        "r": "https://www.google.co.uk/search?q=x",
        "p": True,
        "q": False,
        "t": "Europe/Berlin",
        "d": {"plan": "free", "count": 3, "ratio": 0.5, "done": True},
        "n": 3,
        "w": 1280,
    },
    {"e": "load", "b": "beacon-2", "u": "http://www.example.com", "p": False, "q": True},
    {"e": "unload", "b": "beacon-1", "m": 4_200},
    {"e": "custom", "g": "example.com", "b": "beacon-1", "d": {"name": "value"}},
]
ODD: Final[tuple[bytes, ...]] = (
    b"\0",
    b"\\u0000",
    b"\\ud800",
    b"\\udc00\\ud800",
    b"\xff",
    b"\xc3",
    b"\xed\xa0\x80",
    b"\xf0\x9f\x98\x80",
    b"\xef\xbb\xbf",
    b"\xe2\x80\xae",
    b"\\",
    b'"',
    b"\\u",
    b"%",
    b"%00",
    b"%ff",
    b"%2f",
    b"//",
    b"@",
    b"#",
    b"?",
    b":",
    b":99999",
    b"[::1]",
    b"[",
    b"]",
    b"xn--",
    b"xn--a-\xc3\xbc",
    b".",
    b"..",
    b"-",
    b"1e999",
    b"-0",
    b"1" * 400,
    b"NaN",
    b"Infinity",
    b"null",
    b"true",
    b"{}",
    b"[]",
    b"[" * 2_000,
    b'{"a":' * 2_000,
    b"a" * 3_000,
    b"a." * 200,
    b"utm_source=",
    b"&" * 500,
    b"=" * 500,
    b"\r\n",
    b"\t",
    b" ",
    b"/",
    b"<script>",
    b"'\"><",
    b"(other)",
    b"javascript:",
    b"data:,",
    b"Etc/GMT+14",
    b"Object missing required field `q`",
    b"' - at `$.q1`",
)
VALUES: Final[tuple[Any, ...]] = (
    None,
    True,
    0,
    -1,
    1.5,
    1e308,
    2**53,
    2**64,
    10**400,
    "",
    " ",
    "x" * 65,
    "\N{GRINNING FACE}" * 64,
    "Object missing required field `q1`",
    "at `$.q1`",
    "example.com",
    "https://example.com/",
    "https://example.com:443/\N{LATIN SMALL LETTER U WITH DIAERESIS}?utm_source=%zz&utm_source=b",
    "HTTPS://EXAMPLE.COM./%e4%b8%ad",
    "https://user:pass@example.com/",
    "https://xn--mnchen-3ya.example/",
    "https://[2001:db8::1]/",
    "android-app://com.example/",
    [],
    {},
    {"a": {}},
    {"": ""},
    {f"n{number}": number for number in range(31)},
)
ENOUGH: Final = 16_384


def mutated(source: random.Random) -> bytes:
    """Return a body, changed in one to six places."""
    whole = dict(source.choice(WHOLE))
    if source.random() < 0.5 and "b" in whole:
        whole["b"] = f"b{source.getrandbits(64)}"
    if source.random() < 0.5:
        for _ in range(source.randint(1, 3)):
            key = source.choice("ebuprqtdnwmgx")
            if source.random() < 0.2:
                whole.pop(key, None)
            else:
                whole[key] = source.choice(VALUES)
    body = bytearray(json.dumps(whole, ensure_ascii=source.random() < 0.5).encode())
    if source.random() < 0.7:
        for _ in range(source.randint(1, 3)):
            change(body, source)
    return bytes(body[:ENOUGH])


def change(body: bytearray, source: random.Random) -> None:
    """Change a body in one place."""
    place = source.randint(0, len(body))
    length = source.choice((0, 1, 1, 2, 5, 20))
    match source.randint(0, 5):
        case 0:
            body[place : place + length] = b""
        case 1:
            body[place : place + length] = source.choice(ODD)
        case 2:
            body[place : place + 1] = bytes([source.randint(0, 255)])
        case 3:
            part = bytes(body[place : place + 30])
            body[place:place] = part * source.choice((1, 2, 50))
        case 4:
            other = source.randint(0, len(body))
            body[place:place] = body[other : other + length]
        case 5:
            body[place:place] = source.choice(ODD)
