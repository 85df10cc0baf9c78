"""A configuration that was cut while it was written: refused."""

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

[retention]
raw_days = 730
after = "nothing"

[retention.websites."a.example"]
raw_days = 0

[backup]
at = "04:30"
keep = 14

[log]
format = "json"
level = "error"
"""


def said(config: Config) -> dict[str, object]:
    return {
        f"{name}.{key}": value
        for name in ("server", "store", "events", "limits", "retention", "backup", "log")
        for key, value in structs.asdict(getattr(config, name)).items()
    }


def test_a_file_cut_at_any_byte_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "medamad.toml"
    file.write_bytes(WHOLE)
    whole, default = load(file), said(Config())
    assert sum(value != default[key] for key, value in said(whole).items()) == 20
    for length in range(len(WHOLE)):
        cut = WHOLE[:length]
        file.write_bytes(cut)
        with pytest.raises(ConfigError) as refused:
            # What ends with a line may be meant so, but where more is known to have been there.
            load(file).check_whole(whole.text)
        told = str(refused.value)
        assert told.startswith(f"{file}: ")
        assert "\n" not in told
        if cut[-1:] in (b"", b"\n") and "it ends where it went on before" not in told:
            assert "TOML" in told, "an array that is open is all that can be wrong with whole lines"


def test_a_file_that_was_changed_is_none_that_was_cut(tmp_path: Path) -> None:
    file = tmp_path / "medamad.toml"
    for changed in (WHOLE, WHOLE + b"# more\n", WHOLE.replace(b"7000", b"8000"), b"# none\n"):
        file.write_bytes(changed)
        load(file).check_whole(WHOLE.decode())


@pytest.mark.parametrize("content", [b"", b"\n", b"# nothing\n"])
def test_a_file_that_says_nothing_gives_the_defaults(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "medamad.toml").write_bytes(content)
    assert said(load(tmp_path / "medamad.toml")) == said(Config())
