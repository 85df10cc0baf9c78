"""The settings of a website: the account and full tokens may read and change them."""

from functools import partial
from typing import Any, Final

import msgspec
from msgspec import UNSET, UnsetType

from medamad.domain.dimensions import OTHER, Dimension
from medamad.domain.errors import BadRequest
from medamad.domain.hits import BotRule, HostingRule
from medamad.domain.website_settings import WebsiteSettings
from medamad.domain.websites import Website, changed_settings
from medamad.ingest.pipeline import Rules
from medamad.ingest.website_rules import WebsiteRules
from medamad.query.filters import text_pieces
from medamad.query.request import Cancellation
from medamad.storage.dictionary.decode import CodeTexts
from medamad.web.auth import Access
from medamad.web.call import Call
from medamad.web.dispatch import Routes
from medamad.web.responses import Response, json_response
from medamad.web.routes.goals import sent

MAX_CHANGES: Final = 20
MAX_PREVIEW: Final = 4_000
"""Characters of the settings in a URL: encoded, they still fit into what servers take."""


class SettingsChange(msgspec.Struct, forbid_unknown_fields=True):
    """The body that changes settings: the members that it has; null is as configured."""

    bots: BotRule | UnsetType | None = UNSET
    hosting: HostingRule | UnsetType | None = UNSET
    respect_gpc: bool | UnsetType | None = UNSET
    blocked_networks: list[str] | UnsetType = UNSET
    blocked_countries: list[str] | UnsetType = UNSET
    allowed_hosts: list[str] | UnsetType = UNSET
    excluded_paths: list[str] | UnsetType = UNSET
    redacted_paths: list[str] | UnsetType = UNSET
    redact_uuids: bool | UnsetType = UNSET
    redact_hexadecimal: bool | UnsetType = UNSET
    redact_emails: bool | UnsetType = UNSET
    kept_parameters: list[str] | UnsetType = UNSET


_CHANGE: Final = msgspec.json.Decoder(SettingsChange)


def read_settings(call: Call, hostname: str) -> Response:
    """Return the settings of a website, and those of the configuration."""
    return _response(call, call.website(hostname))


async def change_settings(call: Call, hostname: str) -> Response:
    """Change the settings of a website."""
    website = call.website(hostname)
    change = partial(_changed, call.body(_CHANGE), call.backend.pipeline.rules)
    backend = call.backend
    website = await backend.store.change_website_settings(website, change, int(backend.clock()))
    return _response(call, website)


async def preview_settings(call: Call, hostname: str) -> Response:
    """Return what would be stored of the paths that are stored, without changing anything."""
    website = call.website(hostname)
    rules = call.backend.pipeline.rules
    if len(call.parameters.text("settings") or "") > MAX_PREVIEW:
        raise BadRequest(f"settings: expected at most {MAX_PREVIEW:,} characters in a preview")
    settings = _changed(call.parameters.json("settings", _CHANGE), rules, website.settings)
    own, backend = WebsiteRules.of(settings), call.backend
    cancellation = Cancellation()
    try:
        return await call.run_query(
            lambda: json_response(
                backend.engine.read(
                    website,
                    backend.settings.sources,
                    cancellation,
                    lambda reader: _preview(reader.texts, own, cancellation),
                )
            )
        )
    finally:
        cancellation.cancel()


def _changed(change: SettingsChange, rules: Rules, old: WebsiteSettings) -> WebsiteSettings:
    members = sent(change)
    rules.check_own(members.get("respect_gpc"))
    return changed_settings(old, members)


def _response(call: Call, website: Website) -> Response:
    rules = call.backend.pipeline.rules
    configured: dict[str, bool | str] = {
        "bots": rules.bots,
        "hosting": rules.hosting_rule,
        "respect_gpc": rules.respect_gpc,
        "origins": rules.origins,
    }
    return json_response({**msgspec.to_builtins(website.settings), "configured": configured})


def _preview(texts: CodeTexts, own: WebsiteRules, cancellation: Cancellation) -> dict[str, Any]:
    stored: set[str] = set()
    changes: list[dict[str, str | None]] = []
    paths = redacted = excluded = 0
    for piece in text_pieces(texts, Dimension.PATH, 0, cancellation):
        for path in piece:
            if path in ("", OTHER):
                continue
            paths += 1
            becomes = own.stored_anew(path)
            redacted += becomes not in (path, None)
            excluded += becomes is None
            if becomes is not None:
                stored.add(becomes)
            if becomes != path and len(changes) < MAX_CHANGES:
                changes.append({"path": path, "stored": becomes})
    return {
        "paths": paths,
        "redacted": redacted,
        "excluded": excluded,
        "stored": len(stored),
        "changes": changes,
    }


def add_to(routes: Routes) -> None:
    """Add the routes of this module."""
    path = "/websites/<hostname>/settings"
    routes.add("GET", path, read_settings, Access.CHANGE)
    routes.add("PATCH", path, change_settings, Access.CHANGE)
    routes.add("GET", f"{path}/preview", preview_settings, Access.CHANGE)
