"""A configuration, or a list beside it, that was cut while it was written: refused."""

from pathlib import Path

import pytest
from msgspec import structs
from support.call_counts import calls_of

from medamad.config.lists import load_lists
from medamad.config.schema import Config, ConfigError, load
from medamad.config.truncation import Said

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


def reloaded(said: Said, folder: Path) -> None:
    """Go by what the files say, as a reload does."""
    config = load(folder / "medamad.toml")
    lists = load_lists(config).texts
    said.check(config, lists)
    said.take(config, lists)


def going_by(folder: Path) -> Said:
    """Begin to go by what the files say."""
    config = load(folder / "medamad.toml")
    return Said(config.text, load_lists(config).texts)


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
            Said(whole.text, {}).check(load(file), {})
        told = str(refused.value)
        assert told.startswith(f"{file}: ")
        assert "\n" not in told
        if cut[-1:] in (b"", b"\n") and "it came last before and is missing" not in told:
            assert "TOML" in told, "an array that is open is all that can be wrong with whole lines"


EDITED = (
    WHOLE.replace(b"caf\xc3\xa9", b"tea"),
    WHOLE.replace(b"7000", b"8000").replace(b"error", b"warning"),
    WHOLE.replace(b'bots = "strict"', b'bots = "off"\norigins = "any"\nrespect_gpc = true'),
    WHOLE.replace(b"hits_per_minute = 7000\n", b""),
)


@pytest.mark.parametrize("edited", EDITED)
def test_a_file_that_was_edited_is_refused_where_it_was_cut_as_well(
    tmp_path: Path, edited: bytes
) -> None:
    file = tmp_path / "medamad.toml"
    for length in range(len(edited)):
        file.write_bytes(edited[:length])
        with pytest.raises(ConfigError):
            Said(WHOLE.decode(), {}).check(load(file), {})


def test_what_came_last_is_so_in_the_file_and_not_in_its_tables(tmp_path: Path) -> None:
    folder, file = tmp_path, tmp_path / "medamad.toml"
    before = '[retention]\nraw_days = 9\n[log]\nlevel = "error"\n'
    arrays = 'cors_origins = [\n"https://a.example",\n]\n# end\n\n'
    for cut, end, names in (
        (before, '[retention.websites."a.example"]\nraw_days = 0\n', "retention.websites"),
        (f"{before}[server]\n", arrays, "server.cors_origins"),
    ):
        file.write_text(cut + end, "utf-8")
        said_before = going_by(folder)
        file.write_text(f"# edited\n{cut}", "utf-8")
        with pytest.raises(ConfigError, match=rf": {names}.*: it came last before and is missing"):
            reloaded(said_before, folder)


@pytest.mark.parametrize(
    ("before", "end"),
    [
        ("[server]\n", "data_dir = '''\na = 1\nb = 2\n'''\n"),
        ("[server]\ndemo = true\n", "cors_origins = [\n'https://a.example', # = a\n]\n"),
        ("", "server.listen = ['tcp:8081']\n"),
        ("", "\"server\" . 'demo' = true\n"),
        ("[server]\r\ndemo = true\r\n", "script_name = 's.js'\r\n[log]\r\n"),
        ("[retention.websites]\n", "\t'b.example' = { raw_days = 9 }\n"),
        ("[retention.websites]\n", '"b.example" = { raw_days = 9 }\n'),
    ],
)
def test_what_came_last_may_be_written_in_each_way_of_toml(
    tmp_path: Path, before: str, end: str
) -> None:
    file = tmp_path / "medamad.toml"
    file.write_bytes((before + end).encode())
    said_before = going_by(tmp_path)
    file.write_bytes(f"# edited\n{before}".encode())
    with pytest.raises(ConfigError, match="it came last before and is missing"):
        reloaded(said_before, tmp_path)


def test_a_long_array_at_the_end_is_gone_through_but_a_few_times(tmp_path: Path) -> None:
    def work(entries: int) -> int:
        networks = "".join(f'"10.0.{entry // 256}.{entry % 256}",\n' for entry in range(entries))
        (tmp_path / "medamad.toml").write_text(
            f"[log]\nlevel = 'info'\n[server]\ntrusted_proxies = [\n{networks}]\n", "utf-8"
        )
        said_before = going_by(tmp_path)
        edited = load(tmp_path / "medamad.toml")
        return calls_of(lambda: said_before.check(edited, {}))

    assert work(400) < 2.5 * work(200)


LISTS = {
    "blocked.txt": b"# caf\xc3\xa9\n192.0.2.7\n198.51.100.0/24 # office\n\n2001:db8:12::/48\n",
    "spam.txt": b"semalt.com\ncom-traffic.example\norg.spam.example\n",
    "referrers.toml": b'# ours\n"a.example" = "A"\n"b.example" = "B # C"\n',
}


@pytest.mark.parametrize("name", LISTS)
def test_a_list_cut_at_any_byte_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / "medamad.toml").touch()
    file = tmp_path / name
    file.write_bytes(LISTS[name])
    said_before = going_by(tmp_path)
    for length in range(len(LISTS[name])):
        file.write_bytes(LISTS[name][:length])
        with pytest.raises(ConfigError) as refused:
            reloaded(said_before, tmp_path)
        assert refused.value.file == file
        assert "\n" not in str(refused.value)


@pytest.mark.parametrize("name", LISTS)
def test_a_list_that_ends_amid_a_line_is_refused_whenever_it_is_read(
    tmp_path: Path, name: str
) -> None:
    (tmp_path / "medamad.toml").touch()
    (tmp_path / name).write_bytes(LISTS[name][:-1])
    with pytest.raises(ConfigError, match="expected a line end at the end"):
        going_by(tmp_path)


def test_what_is_meant_is_taken_at_the_next_reload(tmp_path: Path) -> None:
    short = {"medamad.toml": WHOLE[:200].rpartition(b"\n")[0] + b"\n", "blocked.txt": b""}
    whole = {"medamad.toml": WHOLE, "blocked.txt": LISTS["blocked.txt"]}
    for name, content in whole.items():
        (tmp_path / name).write_bytes(content)
    said_before = going_by(tmp_path)
    for name, content in short.items():
        (tmp_path / name).write_bytes(content)
    with pytest.raises(ConfigError, match="came last before") as refused:
        reloaded(said_before, tmp_path)
    assert refused.value.file == tmp_path / "medamad.toml"
    assert refused.value.reason.endswith(f"; the same holds of {tmp_path / 'blocked.txt'}")
    reloaded(said_before, tmp_path)
    for contents in (whole, short):
        for name, content in contents.items():
            (tmp_path / name).write_bytes(content)
        if contents is whole:
            reloaded(said_before, tmp_path)
    with pytest.raises(ConfigError):
        reloaded(said_before, tmp_path)


def test_a_file_that_was_changed_is_none_that_was_cut(tmp_path: Path) -> None:
    file = tmp_path / "medamad.toml"
    for changed in (WHOLE, WHOLE + b"# more\n", *EDITED):
        file.write_bytes(changed)
        Said(WHOLE.decode(), {}).check(load(file), {})


def test_a_list_that_was_changed_is_none_that_was_cut(tmp_path: Path) -> None:
    (tmp_path / "medamad.toml").touch()
    file = tmp_path / "blocked.txt"
    for before, after in (
        ("192.0.2.1\n", "192.0.2.2\n"),
        ("192.0.2.1\n192.0.2.2\n", "192.0.2.2\n"),
        ("192.0.2.1\n", "192.0.2.1 # me\n192.0.2.2\n"),
        ("", "192.0.2.1\n"),
        ("192.0.2.1\n# long ago\n", "192.0.2.1\n"),
    ):
        file.write_text(before, "utf-8")
        said_before = going_by(tmp_path)
        file.write_text(after, "utf-8")
        reloaded(said_before, tmp_path)


def test_another_list_is_none_that_was_cut(tmp_path: Path) -> None:
    (tmp_path / "medamad.toml").touch()
    said_before = going_by(tmp_path)
    (tmp_path / "spam.txt").touch()
    reloaded(said_before, tmp_path)


@pytest.mark.parametrize("content", [b"", b"\n", b"# nothing\n"])
def test_a_file_that_says_nothing_gives_the_defaults(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "medamad.toml").write_bytes(content)
    assert said(load(tmp_path / "medamad.toml")) == said(Config())
