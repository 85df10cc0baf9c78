"""Share links: made and revoked by the account, opened by their readers."""

from http import HTTPStatus
from typing import Any, Final

import msgspec

from medamad.domain.accounts import Share
from medamad.domain.errors import NotFound, Unauthorised
from medamad.domain.websites import Website
from medamad.web.auth import SHARE, Access, sender_network
from medamad.web.dispatch import Call, Routes
from medamad.web.responses import Response, json_response, no_content


class ShareDetails(msgspec.Struct):
    """The body that makes a share link."""

    name: str
    password: str | None = None
    embed: list[str] = []


class ShareLogin(msgspec.Struct):
    """The body that unlocks a share link."""

    password: str


_DETAILS: Final = msgspec.json.Decoder(ShareDetails)
_LOGIN: Final = msgspec.json.Decoder(ShareLogin)


def _share(share: Share) -> dict[str, Any]:
    return {
        "id": share.id,
        "name": share.name,
        "protected": bool(share.password_hash),
        "embed": share.embed,
        "dateCreated": share.created,
    }


def list_all(call: Call, hostname: str) -> Response:
    """Return the share links of a website."""
    shares = call.backend.shares.of(call.website(hostname).number)
    return json_response([_share(share) for share in shares])


async def make(call: Call, hostname: str) -> Response:
    """Make a share link."""
    website, details = call.website(hostname), call.body(_DETAILS)
    share = await call.backend.shares.make(
        details.name, website.number, password=details.password, embed=details.embed
    )
    return json_response(_share(share), HTTPStatus.CREATED)


async def revoke(call: Call, hostname: str, share: str) -> Response:
    """Revoke a share link."""
    await call.backend.shares.revoke(share, call.website(hostname).number)
    return no_content()


def read(call: Call, share: str) -> Response:
    """Return the website of a share link, if it is unlocked."""
    backend = call.backend
    website = shared_website(call, backend.shares.find(share))
    keys = call.request.headers.values(SHARE) or (share.encode(),)
    try:
        opened = backend.shares.authenticate(keys[0].decode("latin-1"))
    except Unauthorised:
        opened = None
    if opened is None or opened.id != share:
        return json_response({"protected": True})
    return json_response({"protected": bool(opened.password_hash), "hostname": website.hostname})


async def unlock(call: Call, share: str) -> Response:
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
    routes.add("GET", "/websites/<hostname>/shares", list_all, Access.COOKIE)
    routes.add("POST", "/websites/<hostname>/shares", make, Access.COOKIE)
    routes.add("DELETE", "/websites/<hostname>/shares/<share>", revoke, Access.COOKIE)
    routes.add("GET", "/shared/<share>", read, Access.OPEN)
    routes.add("POST", "/shared/<share>", unlock, Access.LOGIN)
