"""The element with which visitors choose not to be counted, and what the fragment says."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from support.browser.example_site import Site, served
from support.browser.opt_out import COUNTED, IGNORED, REFUSED, opt_out
from support.browser.tracker_traffic import tag, watched
from support.browser.visitors import Statistics, Visitor
from support.daemon import Daemon, running

pytestmark = pytest.mark.browser

Make = Callable[..., Visitor]

TEXTS = {
    "de": ("Besuche dieser Website mit diesem Browser werden gezählt.", "nicht gezählt"),
    "en": (COUNTED, "not counted"),
    "es": ("Las visitas a este sitio web con este navegador se cuentan.", "no se cuentan"),
    "fr": ("Les visites de ce site avec ce navigateur sont comptées.", "ne sont pas comptées"),
    "ja": ("このブラウザーからのこのサイトへの訪問は集計されます。", "集計されません"),
    "zh": ("此浏览器对本网站的访问会被统计。", "不会被统计"),
}
NO_STORAGE = """Object.defineProperty(window, "localStorage", {get() {
    throw new DOMException("Access is denied for this document.", "SecurityError");
}});"""


@pytest.fixture
def own_site(daemon: Daemon) -> Iterator[Site]:
    """A website whose page /privacy has the element."""
    contents = {"/privacy": f"<main>{opt_out(daemon.base)}</main>"}
    with served(tag(daemon.base), contents) as site:
        yield site


def test_a_visitor_chooses(website: Statistics, own_site: Site, someone: Make) -> None:
    visitor = someone()
    wire = watched(visitor.context)
    page, there = visitor.page, own_site.address(website.hostname, "/privacy")
    visitor.visit(lambda: page.goto(there))
    statement = page.get_by_role("status")
    assert statement.text_content() == COUNTED
    # By keyboard: it is the only control behind the links.
    page.get_by_text("Away").focus()
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    assert statement.text_content() == IGNORED
    # The view ends here, and nothing follows.
    website.wait_for(1, timed_pages=1)
    page.evaluate("medamad('signup')")
    page.goto(own_site.address(website.hostname, "/about"))
    page.goto(there)
    assert statement.text_content() == IGNORED
    page.goto("about:blank")
    assert [hit["e"] for hit in wire.hits] == ["load", "unload"]
    page.goto(there)
    visitor.visit(lambda: page.get_by_role("button", name="Count this browser").click())
    assert statement.text_content() == COUNTED
    visitor.visit(lambda: page.goto(own_site.address(website.hostname, "/about")))
    website.wait_for(3, timed_pages=1)
    assert website.values("event") == {}
    assert visitor.context.cookies() == []
    assert page.evaluate("Object.entries(localStorage)") == [["medamad", "count"]]
    assert visitor.errors == []


@pytest.mark.parametrize("language", TEXTS)
def test_it_speaks_the_language_of_the_page(daemon: Daemon, someone: Make, language: str) -> None:
    content = {"/": f'<main lang="{language}-XX">{opt_out(daemon.base)}</main>'}
    counted, ignored = TEXTS[language]
    with served("", content) as site:
        visitor = someone()
        page = visitor.page
        page.goto(site.address("privacy.localhost"))
        place = page.locator(".medamad-opt-out")
        assert place.get_attribute("lang") == language
        statement = page.get_by_role("status")
        assert statement.text_content() == counted
        page.get_by_role("button").click()
        assert ignored in (statement.text_content() or "")
        assert Axe().run(page, ".medamad-opt-out").response["violations"] == []


@pytest.mark.parametrize("language", TEXTS)
@pytest.mark.parametrize("script", ["script.js", "scripts/outbound-links.js"])
def test_the_fragment_says_what_it_did_in_the_language_of_the_browser(
    daemon: Daemon, someone: Make, language: str, script: str
) -> None:
    content = {"/": "<script>document.documentElement.lang = ''</script>"}
    with served(f'<script defer src="{daemon.base}/{script}"></script>', content) as site:
        visitor = someone(locale=f"{language}-XX")
        messages = visitor.messages()
        visitor.page.goto(site.address("privacy.localhost", "/#medamad-ignore"))
        visitor.sees(lambda: [TEXTS[language][1] in message for message in messages], [True])
        visitor.page.evaluate("location.hash = 'medamad-count'")
        visitor.sees(lambda: messages[1:], [TEXTS[language][0]])


def test_other_languages_get_english(daemon: Daemon, someone: Make) -> None:
    with served("", {"/": f'<main lang="nl">{opt_out(daemon.base)}</main>'}) as site:
        visitor = someone(locale="sv-SE")
        visitor.page.goto(site.address("privacy.localhost"))
        assert visitor.page.get_by_role("status").text_content() == COUNTED


def test_a_browser_that_keeps_no_choice(daemon: Daemon, someone: Make) -> None:
    with served("", {"/": opt_out(daemon.base)}) as site:
        visitor = someone()
        visitor.page.add_init_script(NO_STORAGE)
        visitor.page.goto(site.address("privacy.localhost"))
        assert visitor.page.get_by_role("status").text_content() == REFUSED
        assert visitor.page.get_by_role("button").count() == 0
        full = someone()
        full.page.add_init_script(
            "Storage.prototype.setItem = () => { throw new DOMException('', 'QuotaExceededError') }"
        )
        full.page.goto(site.address("privacy.localhost"))
        full.page.evaluate(
            "Object.defineProperty(window, 'localStorage', {value: new Proxy({}, {set() {"
            " throw new DOMException('', 'QuotaExceededError'); }})})"
        )
        full.page.get_by_role("button").click()
        assert full.page.get_by_role("status").text_content() == REFUSED


def test_the_element_alone_sends_nothing(daemon: Daemon, someone: Make) -> None:
    """Also with a strict policy of the page."""
    policy = {"Content-Security-Policy": f"default-src 'none'; script-src {daemon.base}"}
    with served("", {"/": opt_out(daemon.base)}, policy) as site:
        visitor = someone()
        requests: list[str] = []
        visitor.page.on("request", lambda request: requests.append(request.url))
        visitor.page.goto(site.address("privacy.localhost"))
        visitor.page.get_by_role("button").click()
        visitor.sees(lambda: visitor.page.get_by_role("status").text_content(), IGNORED)
        of_daemon = [url for url in requests if url.startswith(daemon.base)]
        assert of_daemon == [f"{daemon.base}/api/event/opt-out.js"]
        assert visitor.errors == []


CONFIGURED: dict[str, tuple[str, str]] = {
    "base path": ('base_path = "/stats"', "/stats"),
    "event name": ('event_name = "pulse"', ""),
}


@pytest.mark.parametrize("name", CONFIGURED)
def test_the_fragment_finds_it_wherever_hits_go(tmp_path: Path, someone: Make, name: str) -> None:
    server, prefix = CONFIGURED[name]
    with (
        running(tmp_path, configuration=f"[server]\n{server}") as daemon,
        served(f'<script defer src="{daemon.base}{prefix}/script.js"></script>') as site,
    ):
        visitor: Any = someone()
        messages = visitor.messages()
        visitor.page.goto(site.address("privacy.localhost", "/#medamad-ignore"))
        visitor.sees(lambda: list(messages), [IGNORED])
