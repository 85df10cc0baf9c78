"""Who visits in a browser, and what the statistics then say."""

from collections.abc import Callable
from typing import Any, TypeVar

from attrs import define
from playwright.sync_api import BrowserContext, Page, Response
from support.browser.waiting import comes
from support.daemon import PATIENCE_S, Client

T = TypeVar("T")

DESKTOP = (
    "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) "
    "Chrome/131.0.0.0 Safari/537.36"
)
PHONE = (
    "Mozilla/5.0 (Linux; Android 10; K) AppleWebKit/537.36 (KHTML, like Gecko) "
    "Chrome/131.0.0.0 Mobile Safari/537.36"
)


@define
class Statistics:
    """The statistics of one website, read by its owner."""

    owner: Client
    hostname: str

    def get(self, what: str, **parameters: str) -> Any:
        return self.owner.get(f"/api/website/{self.hostname}/{what}", **parameters)

    def wait_for(self, views: int, *, timed_pages: int, **filters: str) -> None:
        """Wait until that many views are there, and that many pages with a known time."""
        comes(lambda: self.get("summary", **filters)["current"]["pageviews"], views)
        comes(lambda: len(self.get("time", **filters)), timed_pages)

    def wait_for_values(self, name: str, wanted: dict[str, int], **parameters: str) -> None:
        """Wait until a property has these values, each in so many events."""
        comes(lambda: self.values(name, **parameters), wanted)

    def values(self, name: str, **parameters: str) -> dict[str, int]:
        """Return the values of a property with their events."""
        rows = self.get("properties", **{"prop_name[eq]": name} | parameters)
        return {row["value"]: row["events"] for row in rows}

    @property
    def pages(self) -> dict[str, tuple[int, int]]:
        """Each path with its visitors and its views."""
        return {row["path"]: (row["visitors"], row["pageviews"]) for row in self.get("pages")}

    @property
    def visitors_and_views(self) -> tuple[int, int]:
        current = self.get("summary")["current"]
        return current["visitors"], current["pageviews"]


@define
class Visitor:
    """A person in front of a browser of their own."""

    context: BrowserContext
    page: Page
    errors: list[str]

    def visit(self, act: Callable[[], object]) -> Response:
        """Run what begins a view; return the daemon's response to its load."""
        with self.page.expect_response(_answers_a_load, timeout=PATIENCE_S * 1000) as answer:
            act()
        return answer.value

    def messages(self) -> list[str]:
        """Return the messages that pages show, as they come; each is read and closed."""
        found: list[str] = []
        self.page.on("dialog", lambda dialog: (found.append(dialog.message), dialog.dismiss()))
        return found

    def sees(self, read: Callable[[], T], wanted: T) -> None:
        """Wait until what is read is what is wanted, while the browser's events arrive."""
        comes(lambda: (self.context.cookies(), read())[1], wanted)

    def hide(self, *, hidden: bool = True) -> None:
        """Hide or show the tab."""
        self.page.evaluate(
            """hidden => {
                const state = hidden ? "hidden" : "visible";
                Object.defineProperty(document, "hidden", {value: hidden, configurable: true});
                Object.defineProperty(
                    document, "visibilityState", {value: state, configurable: true});
                document.dispatchEvent(new Event("visibilitychange", {bubbles: true}));
            }""",
            hidden,
        )


def _answers_a_load(response: Response) -> bool:
    body = response.request.post_data
    return response.url.endswith("/hit") and body is not None and '"load"' in body
