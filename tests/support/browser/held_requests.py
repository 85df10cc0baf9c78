"""Requests of a page that wait."""

from contextlib import suppress

from playwright.sync_api import Error as PlaywrightError
from playwright.sync_api import Page, Route


class HeldRequests:
    """Requests that wait until they are let go."""

    def __init__(self, page: Page, pattern: str) -> None:
        self._waiting: list[Route] | None = []
        page.route(pattern, self._take)

    def _take(self, route: Route) -> None:
        if self._waiting is None:
            route.continue_()
        else:
            self._waiting.append(route)

    def let_go(self) -> None:
        waiting, self._waiting = self._waiting or [], None
        for route in waiting:
            # The page has aborted what it requested again in the meantime.
            with suppress(PlaywrightError):
                route.continue_()
