"""The pictures in the README and in docs/ show the dashboard as it is.

They are of the demonstration at a moment of the past, so they change only with what is drawn.
Beside them, `texts.txt` has the headings and texts that each shows, but for those in rows of
figures, and with 0 for every number. After changing these, or what they look like, run

    .venv/bin/python tests/browser/test_pictures.py

It makes all of them anew.
"""

import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from io import BytesIO
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import pytest
from attrs import frozen
from PIL import Image
from playwright.sync_api import Browser, Page, expect

# It may be run by its path.
sys.path.append(str(Path(__file__).parents[1]))

from support.browser.chromium import chromium_running, close
from support.browser.dashboard import SCHEMES, opened, settle
from support.browser.past_demo import NOW, demonstration_of_the_past
from support.daemon import Client

ROOT: Final = Path(__file__).parents[2]
IMAGES: Final = ROOT / "docs" / "images"
TEXTS: Final = IMAGES / "texts.txt"
WEEKS: Final = "from=2026-10-30&to=2026-11-26"
JOURNAL: Final = f"websites/gardenpost.example?{WEEKS}"
SHOP: Final = f"websites/shop.gardenpost.example?{WEEKS}"
PHONE: Final[dict[str, Any]] = {
    "viewport": {"width": 390, "height": 844},
    "device_scale_factor": 2,
    "has_touch": True,
    "is_mobile": True,
}
_COLOURS: Final = 256
_MOST_LOOKS: Final = 20
_NEXT_LOOK_MS: Final = 250
_READ_TEXTS: Final = """(whole) => {
    const lines = [];
    const seen = ":not(tbody *, svg *, .hidden, .hidden *, .skip)";
    for (const it of document.body.querySelectorAll(seen)) {
        const own = [...it.childNodes].filter((node) => node.nodeType === Node.TEXT_NODE);
        const text = own.map((node) => node.data).join(" ").trim() || it.placeholder;
        const isBelow = !whole && it.getBoundingClientRect().top > innerHeight;
        if (!text || isBelow || !it.checkVisibility()) continue;
        const level = it.closest("h1, h2, h3")?.tagName[1] ?? 0;
        lines.push(`${"#".repeat(level)} ${text.replace(/\\s+/g, " ")}`.trim());
    }
    return lines;
}"""
_NUMBER: Final = re.compile(r"\d+(?:[.,]\d+)*")
_WORD: Final = re.compile(r"[^\W\d_]{3}")


@frozen
class Picture:
    """A page of the dashboard. `whole` is the page in its full height."""

    path: str
    options: dict[str, Any]
    whole: bool = True
    act: Callable[[Page], object] = lambda _page: None


def open_the_funnel(page: Page) -> None:
    page.get_by_role("tab", name="Funnels", exact=True).click()
    page.locator(".funnel h3 a").first.click()
    page.get_by_role("heading", level=1, name="Purchase").wait_for()


PICTURES: Final = {
    "website": Picture(SHOP, {}),
    "website-phone": Picture(JOURNAL, PHONE, whole=False),
    "funnel": Picture(SHOP, {"viewport": {"width": 1280, "height": 400}}, act=open_the_funnel),
}


@contextmanager
def shown(
    chromium: Browser, client: Client, picture: Picture, scheme: str = "light"
) -> Iterator[Page]:
    """Show what a picture is of."""
    dashboard = opened(chromium, client, now=NOW, color_scheme=scheme, **picture.options)
    page = dashboard.open(picture.path)
    settle(page)
    picture.act(page)
    settle(page)
    expect(page.locator("[aria-busy=true], .skeleton")).to_have_count(0)
    yield page
    close(page.context)


def texts_of(page: Page, picture: Picture) -> list[str]:
    """Return the texts that can be seen, in the order of the page."""
    texts = (_NUMBER.sub("0", text) for text in page.evaluate(_READ_TEXTS, picture.whole))
    return [text for text in texts if _WORD.search(text)]


def written(texts: dict[str, list[str]]) -> str:
    return "\n\n".join("\n".join((f"[{name}]", *lines)) for name, lines in texts.items()) + "\n"


@pytest.mark.browser
def test_pictures_show_the_texts_and_panels_of_the_dashboard(
    chromium: Browser, tmp_path: Path
) -> None:
    texts = {}
    known = TEXTS.read_text("utf-8")
    with demonstration_of_the_past(tmp_path) as client:
        for name, picture in PICTURES.items():
            with shown(chromium, client, picture) as page:
                for _ in range(_MOST_LOOKS):
                    texts[name] = texts_of(page, picture)
                    if "\n".join((f"[{name}]", *texts[name], "")) in known:
                        break
                    # A busy machine may still be drawing.
                    page.wait_for_timeout(_NEXT_LOOK_MS)
    assert written(texts) == known, "run: python tests/browser/test_pictures.py"


def test_every_picture_is_used_and_is_there() -> None:
    pages = [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]
    used = {
        picture
        for page in pages
        for picture in re.findall(r"images/([\w-]+\.png)", page.read_text("utf-8"))
    }
    made = {file_of(name, scheme).name for name, scheme in product(PICTURES, SCHEMES)}
    assert used == made == {file.name for file in IMAGES.glob("*.png")}


def file_of(name: str, scheme: str) -> Path:
    return IMAGES / (f"{name}.png" if scheme == "light" else f"{name}-{scheme}.png")


def make_all() -> None:
    texts: dict[str, list[str]] = {}
    with (
        TemporaryDirectory() as folder,
        demonstration_of_the_past(Path(folder)) as client,
        chromium_running() as chromium,
    ):
        for (name, picture), scheme in product(PICTURES.items(), SCHEMES):
            with shown(chromium, client, picture, scheme) as page:
                seen = texts_of(page, picture)
                assert texts.setdefault(name, seen) == seen, "not drawn yet: run it again"
                taken = Image.open(BytesIO(page.screenshot(full_page=picture.whole)))
            # A page has few colours. With a palette a picture is a third as large.
            few = taken.convert("RGB").quantize(
                _COLOURS, Image.Quantize.MAXCOVERAGE, kmeans=3, dither=Image.Dither.NONE
            )
            few.save(file_of(name, scheme), optimize=True)
    TEXTS.write_text(written(texts), "utf-8")


if __name__ == "__main__":
    make_all()
