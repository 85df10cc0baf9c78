import msgspec

from manual.keys import Key, page, read_keys, tables


def keys() -> dict[str, Key]:
    return {f"{key.table}.{key.name}": key for key in read_keys()}


def test_code_and_file_have_the_same_keys() -> None:
    fields = {
        f"{table}.{field.encode_name}"
        for table, struct in tables()
        for field in msgspec.structs.fields(struct)
        if field.name not in {"websites", "collectors"}
    }
    assert set(keys()) == fields


def test_every_key_is_described_in_a_sentence() -> None:
    for name, key in keys().items():
        assert key.meaning[:1].isupper(), name
        assert key.meaning[-1] in ".)", name


def test_ranges_and_defaults_agree_with_the_code() -> None:
    described = keys()
    assert described["store.commit_interval_ms"].kind == "a whole number from 0 to 1,000"
    assert described["store.map_size"].default == '"64 GiB"'
    assert described["store.map_size"].needs_restart
    assert not described["events.bots"].needs_restart
    assert described["events.bots"].kind == 'one of "declared", "off", "strict"'
    assert described["server.metrics_from"].default == '["127.0.0.1", "::1"]'


def test_the_page_lists_every_key() -> None:
    text = page()
    for name in keys():
        assert f"{{ #{name.replace('.', '-')} }}" in text
