"""The settings of a website as a whole, or its exclusions: exported, and added to another's."""

from collections.abc import Mapping
from typing import Any, Final

import msgspec
from attrs import asdict

from medamad.domain.exported_settings import ExportedSettings, check_members, exported_exclusions
from medamad.query.exclusions import check_exported
from medamad.web.auth import Access
from medamad.web.call import Call
from medamad.web.dispatch import Routes
from medamad.web.responses import Response, json_response

_SETTINGS: Final = msgspec.json.Decoder(ExportedSettings)
_MEMBERS: Final = msgspec.json.Decoder(Mapping[str, Any])


def export_settings(call: Call, hostname: str) -> Response:
    """Return what is defined for a website."""
    defined = call.backend.store.defined_for(call.website(hostname))
    return json_response(defined.exported())


def export_exclusions(call: Call, hostname: str) -> Response:
    """Return the exclusions of a website and the goals that they name, as an import takes them."""
    definitions = call.backend.store.goals.of(call.website(hostname).number)
    return json_response(exported_exclusions(definitions))


async def import_settings(call: Call, hostname: str) -> Response:
    """Add what is not there yet; return how much that is."""
    website, settings = call.website(hostname), call.body(_SETTINGS)
    check_members(call.body(_MEMBERS))
    check_exported(settings)
    call.backend.pipeline.rules.check_own(settings.settings.respect_gpc)
    now = int(call.backend.clock())
    imported = await call.backend.store.import_settings(website, settings, now)
    return json_response(asdict(imported))


def add_to(routes: Routes) -> None:
    """Add the routes of this module."""
    path = "/websites/<hostname>/settings"
    routes.add("GET", f"{path}/export", export_settings, Access.CHANGE)
    routes.add("GET", f"{path}/export/exclusions", export_exclusions, Access.CHANGE)
    routes.add("POST", f"{path}/import", import_settings, Access.CHANGE)
