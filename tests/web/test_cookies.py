from typing import Any

import pytest
from attrs import frozen
from support.web.client import headers_of

from medamad.web.auth import device_text, session_token
from medamad.web.server.parser import RequestHeaders


@frozen
class Sent:
    headers: RequestHeaders


def request(*cookies: bytes) -> Any:
    return Sent(headers_of({b"Cookie": list(cookies)} if cookies else {}))


@pytest.mark.parametrize(
    ("cookies", "token"),
    [
        ([], None),
        ([b""], None),
        ([b"_me_sess=abc"], "abc"),
        ([b"a=b; _me_sess=abc=; c=d"], "abc="),
        ([b"a=b;_me_sess=abc;c"], "abc"),
        ([b"a=b", b"_me_sess=abc"], "abc"),
        ([b"_me_sess=abc; _me_sess=def"], "def"),
        ([b"_me_sess="], None),
        ([b"_me_sess"], None),
        ([b"_ME_SESS=abc"], None),
        ([b"x_me_sess=abc; a=_me_sess=abc; _me_sess =abc"], None),
        ([b"_me_sess=\xff"], None),
        ([b"=;" * 8_000 + b"_me_sess=abc"], "abc"),
    ],
)
def test_the_last_session_cookie_counts(cookies: list[bytes], token: str | None) -> None:
    assert session_token(request(*cookies)) == token


def test_the_device_has_its_own_cookie() -> None:
    sent = request(b"_me_sess=abc; _me_device=d.1")
    assert (session_token(sent), device_text(sent)) == ("abc", "d.1")
