"""The cookies: of the session, which logout destroys, and of the device, for the next login."""

import re
from typing import Final

from medamad.accounts import sessions
from medamad.web.server.request import Request

COOKIE: Final = b"_me_sess"
MAX_AGE_SECONDS: Final = 30 * 24 * 3600
_ATTRIBUTES: Final = b"Path=/; HttpOnly; SameSite=Lax; Secure"
DEVICE_COOKIE: Final = b"_me_device"


def token_of(request: Request) -> str | None:
    """Return the token that a request carries, None where there is none or no ASCII."""
    return _value(request, COOKIE)


def device_of(request: Request) -> str | None:
    """Return the device that a request carries, None where there is none or no ASCII."""
    return _value(request, DEVICE_COOKIE)


def _value(request: Request, name: bytes) -> str | None:
    """Return the last cookie of a name. Whatever else is in the header is not looked at."""
    sent = b";".join(request.headers.values(b"Cookie"))
    values = re.findall(rb"(?:\A|;)\s*%b=([^;]*)" % name, sent)
    if not values or not values[-1].isascii():
        return None
    return values[-1].decode("ascii") or None


def begun(token: str) -> tuple[bytes, bytes]:
    """Return the header that sets the cookie."""
    value = b"%b=%b; Max-Age=%d; %b" % (COOKIE, token.encode(), MAX_AGE_SECONDS, _ATTRIBUTES)
    return (b"Set-Cookie", value)


def known(device: str, path: bytes) -> tuple[bytes, bytes]:
    """Return the header that sets the device's cookie, which is sent to the login at `path` alone."""
    attributes = b"Path=%b; HttpOnly; SameSite=Strict; Secure" % path
    value = b"%b=%b; Max-Age=%d; %b"
    return (
        b"Set-Cookie",
        value % (DEVICE_COOKIE, device.encode(), sessions.DEVICE_LIFETIME_S, attributes),
    )


ENDED: Final = (
    b"Set-Cookie",
    b"%b=; Max-Age=0; Expires=Thu, 01 Jan 1970 00:00:00 GMT; %b" % (COOKIE, _ATTRIBUTES),
)
"""The header that destroys the cookie."""
