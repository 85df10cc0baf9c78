"""API tokens and share links. Only the account itself makes and revokes them."""

from http import HTTPStatus
from typing import Any, Final

import msgspec

from medamad.domain.accounts import Scope, Share, Token
from medamad.domain.errors import BadRequest, NotFound, Unauthorised
from medamad.domain.websites import Website, canonical_hostname
from medamad.web.auth import SHARE_HEADER, Access, sender_network
from medamad.web.backend import Backend
from medamad.web.call import Call
from medamad.web.dispatch import Routes
from medamad.web.responses import Response, json_response, no_content


class TokenDetails(msgspec.Struct, rename="camel", forbid_unknown_fields=True):
    """The body that makes a token."""

    name: str
    scope: str
    websites: list[str] | None = None
    date_expires: float | None = None


_TOKEN: Final = msgspec.json.Decoder(TokenDetails)


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


def list_tokens(call: Call) -> Response:
    """Return all tokens, without their secret text."""
    return json_response([_token(token, call.backend) for token in call.backend.tokens.all()])


async def create_token(call: Call) -> Response:
    """Make a token. Only this response contains its text."""
    backend, details = call.backend, call.body(_TOKEN)
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


async def revoke_token(call: Call, token: str) -> Response:
    """Revoke a token."""
    await call.backend.tokens.revoke(token)
    return no_content()


class ShareDetails(msgspec.Struct, forbid_unknown_fields=True):
    """The body that makes a share link."""

    name: str
    password: str | None = None
    embed: list[str] = []


class ShareLogin(msgspec.Struct):
    """The body that unlocks a share link."""

    password: str


_SHARE: Final = msgspec.json.Decoder(ShareDetails)
_LOGIN: Final = msgspec.json.Decoder(ShareLogin)


def _share(share: Share) -> dict[str, Any]:
    return {
        "id": share.id,
        "name": share.name,
        "protected": bool(share.password_hash),
        "embed": share.embed,
        "dateCreated": share.created,
    }


def list_shares(call: Call, hostname: str) -> Response:
    """Return the share links of a website."""
    shares = call.backend.shares.of(call.website(hostname).number)
    return json_response([_share(share) for share in shares])


async def create_share(call: Call, hostname: str) -> Response:
    """Make a share link."""
    website, details = call.website(hostname), call.body(_SHARE)
    share = await call.backend.shares.make(
        details.name, website.number, password=details.password, embed=details.embed
    )
    return json_response(_share(share), HTTPStatus.CREATED)


async def revoke_share(call: Call, hostname: str, share: str) -> Response:
    """Revoke a share link."""
    await call.backend.shares.revoke(share, call.website(hostname).number)
    return no_content()


def read_share(call: Call, share: str) -> Response:
    """Return the website of a share link, if it is unlocked."""
    backend = call.backend
    website = shared_website(call, backend.shares.find(share))
    keys = call.request.headers.values(SHARE_HEADER) or (share.encode(),)
    try:
        opened = backend.shares.authenticate(keys[0].decode("latin-1"))
    except Unauthorised:
        opened = None
    if opened is None or opened.id != share:
        return json_response({"protected": True})
    return json_response({"protected": bool(opened.password_hash), "hostname": website.hostname})


async def unlock_share(call: Call, share: str) -> Response:
    """Unlock a share link by its password."""
    backend, details = call.backend, call.body(_LOGIN)
    network = sender_network(call.request, backend)
    found, key = await backend.shares.unlock(share, details.password, network)
    return json_response({"hostname": shared_website(call, found).hostname, "key": key})


def shared_website(call: Call, share: Share) -> Website:
    """Return the website of a share link. Raises NotFound if it was deleted."""
    website = call.backend.store.websites.by_number(share.website)
    if website is None:
        raise NotFound("the website of this share link was deleted")
    return website


def add_to(routes: Routes) -> None:
    """Add the routes of this module."""
    routes.add("GET", "/user/tokens", list_tokens, Access.COOKIE)
    routes.add("POST", "/user/tokens", create_token, Access.COOKIE)
    routes.add("DELETE", "/user/tokens/<token>", revoke_token, Access.COOKIE)
    routes.add("GET", "/websites/<hostname>/shares", list_shares, Access.COOKIE)
    routes.add("POST", "/websites/<hostname>/shares", create_share, Access.COOKIE)
    routes.add("DELETE", "/websites/<hostname>/shares/<share>", revoke_share, Access.COOKIE)
    routes.add("GET", "/shared/<share>", read_share, Access.OPEN)
    routes.add("POST", "/shared/<share>", unlock_share, Access.LOGIN)
