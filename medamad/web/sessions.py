"""The session cookie: read from a request, set at login, destroyed at logout."""

from typing import Final

from twisted.web.http import Request

COOKIE: Final = b"_me_sess"
MAX_AGE_SECONDS: Final = 30 * 24 * 3600
_ATTRIBUTES: Final = b"Path=/; HttpOnly; SameSite=Lax; Secure"


def token_of(request: Request) -> str | None:
    """Give the token that a request carries, None where there is none or no ASCII."""
    value = request.received_cookies.get(COOKIE)
    if not value or not value.isascii():
        return None
    return value.decode("ascii")


def begun(token: str) -> tuple[bytes, bytes]:
    """Give the header that sets the cookie."""
    value = b"%b=%b; Max-Age=%d; %b" % (COOKIE, token.encode(), MAX_AGE_SECONDS, _ATTRIBUTES)
    return (b"Set-Cookie", value)


ENDED: Final = (
    b"Set-Cookie",
    b"%b=; Max-Age=0; Expires=Thu, 01 Jan 1970 00:00:00 GMT; %b" % (COOKIE, _ATTRIBUTES),
)
"""The header that destroys the cookie."""
