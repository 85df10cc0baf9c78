"""What the tracker sends, as a browser lets it go."""

import json
from typing import Any
from urllib.parse import unquote, urlsplit

from attrs import define, field
from playwright.sync_api import BrowserContext, Request

Hit = dict[str, Any]


@define(slots=False)  # Playwright puts marks on objects whose methods it calls.
class Wire:
    """The hits and the pings that the pages of a browser send, in their order."""

    _context: BrowserContext
    _hits: list[Hit] = field(factory=list)
    _pings: list[str] = field(factory=list)
    _addresses: set[str] = field(factory=set)

    def see(self, request: Request) -> None:
        address, _, query = request.url.partition("?")
        if address.endswith("/hit"):
            self._hits.append(json.loads(request.post_data or "{}"))
        elif address.endswith("/ping"):
            self._pings.append(unquote(query.partition("n=")[2]))
        else:
            return
        self._addresses.add(address)

    @property
    def hits(self) -> list[Hit]:
        """What was sent; ask once the daemon has it."""
        self._hear()
        return self._hits

    @property
    def pings(self) -> list[str]:
        """What each ping asked for."""
        self._hear()
        return self._pings

    @property
    def addresses(self) -> set[str]:
        """Where all of it went, without queries."""
        self._hear()
        return self._addresses

    def _hear(self) -> None:
        """Let Playwright deliver its events, which it does during calls."""
        self._context.cookies()

    def of(self, event: str) -> list[Hit]:
        """Return the hits of a kind: load, unload or custom."""
        return [hit for hit in self.hits if hit["e"] == event]

    @property
    def paths(self) -> list[str]:
        """The path of each view that was sent."""
        return [urlsplit(hit["u"]).path for hit in self.of("load")]

    @property
    def properties(self) -> list[Hit]:
        """The properties of each event that was sent."""
        return [hit["d"] for hit in self.of("custom")]


def watched(context: BrowserContext) -> Wire:
    """Watch a browser from now on."""
    wire = Wire(context)
    context.on("request", wire.see)
    return wire


def tag(base: str, *features: str) -> str:
    """Return the script tag for a set of features, which says where events go."""
    name = ".".join(features) or "default"
    api = base.removeprefix("http://")
    return f'<script defer src="{base}/scripts/{name}.js" data-api="{api}/api"></script>'
