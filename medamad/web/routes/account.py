"""The account: login and logout, its data and settings, and the use of the machine."""

from collections.abc import Mapping
from functools import partial
from http import HTTPStatus
from typing import Any, Final

import msgspec

from medamad.build import LICENCE, VERSION
from medamad.domain.accounts import Account
from medamad.ingest.hit_counts import RecentHits
from medamad.transfer.registry import installed_formats
from medamad.web.auth import (
    DELETE_SESSION,
    Access,
    device_text,
    sender_network,
    set_device,
    set_session,
)
from medamad.web.backend import Backend
from medamad.web.call import Call
from medamad.web.dispatch import Routes
from medamad.web.resource_usage import ResourceUsage
from medamad.web.responses import NO_STORE, Response, json_response, no_content


class LoginDetails(msgspec.Struct):
    """The body of a login."""

    username: str
    password: str


_DETAILS: Final = msgspec.json.Decoder(LoginDetails)


async def log_in(call: Call) -> Response:
    """Begin a login and set the cookies."""
    call.backend.check_is_primary()
    details = call.body(_DETAILS)
    network = sender_network(call.request, call.backend)
    session = await call.backend.accounts.log_in(
        details.username, details.password, network, device_text(call.request)
    )
    prefix = b"/api" if call.request.path.startswith(b"/api/") else b""
    path = b"%b%b/auth/login" % (call.backend.settings.base_path.encode("ascii"), prefix)
    issued = set_session(session.token), set_device(session.device, path)
    return Response(HTTPStatus.OK, headers=(NO_STORE, *issued))


async def log_out(call: Call) -> Response:
    """End the login and delete the cookie."""
    await call.backend.accounts.log_out(call.session_token)
    return no_content(DELETE_SESSION)


class UserChange(msgspec.Struct):
    """The body of a change. Missing members stay as they are."""

    username: str | msgspec.UnsetType = msgspec.UNSET
    password: str | msgspec.UnsetType = msgspec.UNSET
    settings: dict[str, Any] | msgspec.UnsetType = msgspec.UNSET


_CHANGE: Final = msgspec.json.Decoder(UserChange)


def _value(value: Any) -> Any:
    return None if value is msgspec.UNSET else value


def _user(account: Account) -> Response:
    return json_response(
        {
            "username": account.username,
            "settings": {
                "language": account.settings.language,
                "script_type": account.settings.script_type,
            },
            "dateCreated": account.created,
            "dateUpdated": account.updated,
        }
    )


def read_user(call: Call) -> Response:
    """Return the account."""
    return _user(call.account)


async def change_user(call: Call) -> Response:
    """Change the account: all members of the body, or none."""
    wanted = call.body(_CHANGE)
    account = await call.backend.accounts.change(
        call.session_token,
        username=_value(wanted.username),
        password=_value(wanted.password),
        settings=_value(wanted.settings),
    )
    return _user(account)


async def delete_user(call: Call) -> Response:
    """Delete the account and everything it owns."""
    backend = call.backend
    websites = backend.store.websites.all()
    await backend.accounts.delete(call.session_token)
    for website in websites:
        backend.pipeline.uncounted.forget(website.number)
    return no_content(DELETE_SESSION)


async def usage(used: ResourceUsage, call: Call) -> Response:
    """Return the use of the machine, the hits of the last day, and facts about the service."""
    call.caller.check_all()
    backend, settings, now = call.backend, call.backend.settings, call.backend.clock()
    others = {} if backend.collectors is None else await backend.collectors.recent_hits()
    return json_response(
        {
            **_collectors(backend, others),
            **used.of_machine(settings.data_dir),
            "process": used.of_process(now),
            "storage": backend.store.usage(),
            "hits": _hits(backend, others, now),
            "tracker": {"script_name": settings.script_name, "event_name": settings.event_name},
            "service": {
                "version": VERSION,
                "commit": settings.commit,
                "licence": LICENCE,
                "demo": settings.demo,
                "timezone": str(backend.pipeline.rules.zone),
                "export_formats": installed_formats(),
            },
        }
    )


def _collectors(backend: Backend, others: Mapping[int, RecentHits | None]) -> dict[str, object]:
    """Return which collector of several this is, and those whose hits are unknown here."""
    if backend.cluster is None or backend.collectors is None:
        return {}
    silent = [number for number, hits in others.items() if hits is None]
    return {"collectors": {"this": backend.cluster.collector, "silent": silent}}


def _hits(
    backend: Backend, others: Mapping[int, RecentHits | None], now: float
) -> dict[str, object]:
    """Return the counts of hits of the last 24 hours, or since the daemon started.

    Those of all collectors that have answered. Hostnames that have been registered since are left
    out.
    """
    here, serving = backend.pipeline.recent_hits(now), backend.store.websites.serving
    found = RecentHits.sum_of([here, *filter(None, others.values())])
    return {
        "accepted": found.accepted,
        "refused": found.refused,
        "unknown_hostnames": [
            unknown for unknown in found.unknown_hostnames if serving(unknown.hostname) is None
        ],
    }


def add_to(routes: Routes) -> None:
    """Add the routes of this module."""
    routes.add("POST", "/auth/login", log_in, Access.LOGIN)
    routes.add("POST", "/auth/logout", log_out, Access.LOGOUT)
    routes.add("GET", "/user", read_user)
    routes.add("PATCH", "/user", change_user)
    routes.add("DELETE", "/user", delete_user)
    routes.add("GET", "/user/usage", partial(usage, ResourceUsage()), Access.READ)
