from medamad.ingest.rejections import MAX_HOSTNAMES, UnknownHostnames, Unregistered

NOW = 1_700_000_000.0
DAY_S = 86_400


def test_the_newest_comes_first() -> None:
    unknown = UnknownHostnames()
    for second, hostname in enumerate(["a.example", "b.example", "a.example", "c.example"]):
        unknown.count(hostname, NOW + second)
    assert unknown.newest(NOW + 3) == [
        Unregistered("c.example", 1, int(NOW) + 3),
        Unregistered("a.example", 2, int(NOW) + 2),
        Unregistered("b.example", 1, int(NOW) + 1),
    ]


def test_a_day_later_it_is_forgotten() -> None:
    unknown = UnknownHostnames()
    unknown.count("a.example", NOW)
    unknown.count("b.example", NOW + 7_200)
    assert [each.hostname for each in unknown.newest(NOW + DAY_S + 300)] == ["b.example"]
    assert unknown.newest(NOW + 2 * DAY_S) == []


def test_strangers_cannot_make_it_grow() -> None:
    unknown = UnknownHostnames()
    unknown.count("kept.example", NOW)
    for number in range(1_000):
        unknown.count(f"{number}.example", NOW)
        unknown.count("kept.example", NOW)
    names = [each.hostname for each in unknown.newest(NOW)]
    assert names[:2] == ["kept.example", "999.example"]
    assert len(names) == MAX_HOSTNAMES
    unknown.count("9" * 10_000, NOW)
    assert len(unknown.newest(NOW)[0].hostname) == 253
