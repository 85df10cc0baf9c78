"""API tokens. Only the account itself makes and revokes them."""

from http import HTTPStatus
from typing import Any, Final

import msgspec

from medamad.domain.accounts import Scope, Token
from medamad.domain.errors import BadRequest
from medamad.domain.websites import canonical_hostname
from medamad.web.auth import Access
from medamad.web.backend import Backend
from medamad.web.dispatch import Call, Routes
from medamad.web.responses import Response, json_response, no_content


class TokenDetails(msgspec.Struct, rename="camel"):
    """The body that makes a token."""

    name: str
    scope: str
    websites: list[str] | None = None
    date_expires: float | None = None


_DETAILS: Final = msgspec.json.Decoder(TokenDetails)


def _token(token: Token, backend: Backend) -> dict[str, Any]:
    numbers = token.websites
    return {
        "id": token.id,
        "name": token.name,
        "scope": token.scope,
        "websites": None
        if numbers is None
        else [
            website.hostname
            for website in backend.store.websites.all()
            if website.number in numbers
        ],
        "dateCreated": token.created,
        "dateExpires": token.expires,
        "dateLastUsed": token.last_used,
    }


def list_all(call: Call) -> Response:
    """Return all tokens, without their secret text."""
    return json_response([_token(token, call.backend) for token in call.backend.tokens.all()])


async def make(call: Call) -> Response:
    """Make a token. Only this response contains its text."""
    backend, details = call.backend, call.body(_DETAILS)
    if details.scope not in tuple(Scope):
        raise BadRequest(f"scope: expected one of {', '.join(Scope)}")
    websites = None if details.websites is None else _numbers(details.websites, backend)
    text, token = await backend.tokens.make(
        details.name, Scope(details.scope), websites, _second(details.date_expires)
    )
    return json_response({**_token(token, backend), "token": text}, HTTPStatus.CREATED)


def _second(sent: float | None) -> int | None:
    """Return a whole number of Unix seconds. 1.0 and 1 are the same number in JSON."""
    if sent is None:
        return None
    if not sent.is_integer():
        raise BadRequest("dateExpires: expected a whole number or null")
    return int(sent)


def _numbers(hostnames: list[str], backend: Backend) -> list[int]:
    numbers = []
    for hostname in hostnames:
        name = canonical_hostname(hostname, "websites")
        website = backend.store.websites.by_hostname(name)
        if website is None:
            raise BadRequest(f"websites: no website {name} is registered")
        numbers.append(website.number)
    return numbers


async def revoke(call: Call, token: str) -> Response:
    """Revoke a token."""
    await call.backend.tokens.revoke(token)
    return no_content()


def add_to(routes: Routes) -> None:
    """Add the routes of this module."""
    routes.add("GET", "/user/tokens", list_all, Access.COOKIE)
    routes.add("POST", "/user/tokens", make, Access.COOKIE)
    routes.add("DELETE", "/user/tokens/<token>", revoke, Access.COOKIE)
