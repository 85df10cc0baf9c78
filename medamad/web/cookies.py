"""The cookies: the session's, which a logout deletes, and the device's, for the next login."""

import re
from typing import Final

from medamad.accounts import sessions
from medamad.web.server.request import Request

SESSION_COOKIE: Final = b"_me_sess"
DEVICE_COOKIE: Final = b"_me_device"
MAX_AGE_SECONDS: Final = 30 * 24 * 3600
_ATTRIBUTES: Final = b"Path=/; HttpOnly; SameSite=Lax; Secure"


def session_token(request: Request) -> str | None:
    """Return the session token that a request carries, None if there is none or it is not ASCII."""
    return _value(request, SESSION_COOKIE)


def device_text(request: Request) -> str | None:
    """Return the device that a request carries, None if there is none or it is not ASCII."""
    return _value(request, DEVICE_COOKIE)


def _value(request: Request, name: bytes) -> str | None:
    """Return the last cookie of a name. The rest of the header is not parsed."""
    sent = b";".join(request.headers.values(b"Cookie"))
    values = re.findall(rb"(?:\A|;)\s*%b=([^;]*)" % name, sent)
    if not values or not values[-1].isascii():
        return None
    return values[-1].decode("ascii") or None


def set_session(token: str) -> tuple[bytes, bytes]:
    """Return the header that sets the session cookie."""
    attributes = b"Max-Age=%d; %b" % (MAX_AGE_SECONDS, _ATTRIBUTES)
    return (b"Set-Cookie", b"%b=%b; %b" % (SESSION_COOKIE, token.encode(), attributes))


def set_device(device: str, path: bytes) -> tuple[bytes, bytes]:
    """Return the header that sets the device cookie, which is sent to the login at `path` only."""
    attributes = b"Max-Age=%d; Path=%b; HttpOnly; SameSite=Strict; Secure" % (
        sessions.DEVICE_LIFETIME_S,
        path,
    )
    return (b"Set-Cookie", b"%b=%b; %b" % (DEVICE_COOKIE, device.encode(), attributes))


DELETE_SESSION: Final = (
    b"Set-Cookie",
    b"%b=; Max-Age=0; Expires=Thu, 01 Jan 1970 00:00:00 GMT; %b" % (SESSION_COOKIE, _ATTRIBUTES),
)
"""The header that deletes the session cookie."""
