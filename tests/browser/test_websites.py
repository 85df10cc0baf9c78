"""The list of websites."""

from collections.abc import Callable

import pytest
from daemon import Client
from dashboard import PHONE_WIDTH, Dashboard

pytestmark = pytest.mark.browser

Make = Callable[..., Dashboard]


def test_each_website_has_its_visitors_and_a_curve(demo: Client, dashboard_of: Make) -> None:
    page = dashboard_of(demo).open()
    websites = demo.get("/api/websites", summary="true")
    websites.sort(key=lambda website: -website["summary"]["visitors"])
    page.locator(".curve svg").nth(len(websites) - 1).wait_for()
    cards = page.locator("main li").all()
    for card, website in zip(cards, websites, strict=True):
        assert card.get_by_role("heading", level=2).inner_text() == website["hostname"]
        shown = int(card.locator("strong").inner_text().replace(",", ""))
        # The 24 hours move on between the two questions.
        assert shown == pytest.approx(website["summary"]["visitors"], abs=3)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_suits_everybody(scheme: str, demo: Client, dashboard_of: Make) -> None:
    dashboard = dashboard_of(
        demo, color_scheme=scheme, viewport={"width": PHONE_WIDTH, "height": 700}
    )
    dashboard.open()
    assert dashboard.violations() == []
    assert not dashboard.is_wider_than_the_window()
