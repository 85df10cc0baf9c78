"""The daemon without its sockets."""

from attrs import define, evolve
from browser import Browser
from twisted.internet.task import Clock

from medamad.collect.collector import Collector
from medamad.store.store import Store
from medamad.web.site import Site

NOW = 1_750_000_000
"""2025-06-15T15:06:40Z, a Sunday."""
USERNAME, PASSWORD = "ada", "correct horse"


@define(eq=False)
class House:
    """The daemon without its sockets. `now` is the time, in Unix seconds."""

    site: Site
    store: Store
    collector: Collector
    reactor: Clock
    now: float = NOW

    def browser(self, peer: str | None = "203.0.113.9") -> Browser:
        return Browser(self.site, peer=peer)

    def set(self, **settings: object) -> None:
        """Change settings of the web side."""
        self.site.settings = evolve(self.site.settings, **settings)
