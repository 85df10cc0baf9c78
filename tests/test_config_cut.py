"""A configuration that was cut while it was written: refused, or all that it says is meant so."""

from pathlib import Path

import pytest
from msgspec import structs

from medamad.config import Config, ConfigError, load

WHOLE = b"""\
# caf\xc3\xa9
[server]
listen = ["tcp:8081:interface=127.0.0.1", "tcp:8082"]
data_dir = "data"
demo = true
cors_origins = ["https://a.example"]
trusted_proxies = ["10.0.0.0/8", "unix"]
script_name = "s.js"

[store]
map_size = "2 GiB"
commit_interval_ms = 25
min_free_disk = "300 MiB"

[events]
timezone = "Europe/Berlin"
bots = "strict"

[limits]
hits_per_minute = 7000
new_values = 900

[log]
format = "json"
level = "error"
"""


def said(config: Config) -> dict[str, object]:
    return {
        f"{name}.{key}": value
        for name in ("server", "store", "events", "limits", "log")
        for key, value in structs.asdict(getattr(config, name)).items()
    }


def test_a_file_cut_at_any_byte_is_refused_or_says_less(tmp_path: Path) -> None:
    file = tmp_path / "medamad.toml"
    file.write_bytes(WHOLE)
    whole, default = said(load(file)), said(Config())
    assert sum(value != default[key] for key, value in whole.items()) == 15
    refusals: list[str] = []
    for length in range(len(WHOLE)):
        cut = WHOLE[:length]
        file.write_bytes(cut)
        try:
            found = said(load(file))
        except ConfigError as error:
            refusals.append(str(error))
            continue
        other = {key for key, value in found.items() if value not in (whole[key], default[key])}
        # Only a number may have lost its last digits unseen: it is what the file ends with.
        assert len(other) <= 1
        for key in other:
            line = cut.decode().rpartition("\n")[2]
            assert line.startswith(key.partition(".")[2])
            assert line[-1].isdigit()
    assert len(refusals) > len(WHOLE) // 2
    assert all(told.startswith(f"{file}: ") and "\n" not in told for told in refusals)


@pytest.mark.parametrize("content", [b"", b"\n", b"# nothing\n"])
def test_a_file_that_says_nothing_gives_the_defaults(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "medamad.toml").write_bytes(content)
    assert said(load(tmp_path / "medamad.toml")) == said(Config())
