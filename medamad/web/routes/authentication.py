"""Login and logout."""

from http import HTTPStatus
from typing import Final

import msgspec

from medamad.web import cookies
from medamad.web.auth import Access, sender_network
from medamad.web.dispatch import Call, Routes
from medamad.web.responses import NO_STORE, Response, no_content


class LoginDetails(msgspec.Struct):
    """The body of a login."""

    username: str
    password: str


_DETAILS: Final = msgspec.json.Decoder(LoginDetails)


async def log_in(call: Call) -> Response:
    """Begin a login and set the cookies."""
    details = call.body(_DETAILS)
    network = sender_network(call.request, call.backend)
    session = await call.backend.accounts.log_in(
        details.username, details.password, network, cookies.device_text(call.request)
    )
    path = b"/api/auth/login" if call.request.path.startswith(b"/api/") else b"/auth/login"
    issued = cookies.set_session(session.token), cookies.set_device(session.device, path)
    return Response(HTTPStatus.OK, headers=(NO_STORE, *issued))


async def log_out(call: Call) -> Response:
    """End the login and delete the cookie."""
    await call.backend.accounts.log_out(call.session_token)
    return no_content(cookies.DELETE_SESSION)


def add_to(routes: Routes) -> None:
    """Add the routes of this module."""
    routes.add("POST", "/auth/login", log_in, Access.LOGIN)
    routes.add("POST", "/auth/logout", log_out, Access.LOGOUT)
