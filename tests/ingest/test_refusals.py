from support.call_counts import calls_of

from medamad.ingest.rejections import Refusals, Refused

NOW = 1_700_000_000.0
DAY_S = 86_400


def test_refusals_are_counted_by_website_and_reason() -> None:
    refusals = Refusals()
    for website, reason in [(1, "bot"), (1, "spam"), (1, "bot"), (2, "bot"), (None, "malformed")]:
        refusals.count(website, reason, NOW)
    assert refusals.of(1, NOW) == [
        Refused("bot", 2, int(NOW)),
        Refused("spam", 1, int(NOW)),
    ]
    assert refusals.of(2, NOW) == [Refused("bot", 1, int(NOW))]
    assert refusals.of(3, NOW) == []
    assert refusals.of(None, NOW) == [Refused("malformed", 1, int(NOW))]
    assert refusals.totals() == {"bot": 3, "spam": 1, "malformed": 1}


def test_the_most_frequent_reason_comes_first_and_ties_by_name() -> None:
    refusals = Refusals()
    for reason in ["spam", "bot", "blocked", "spam"]:
        refusals.count(1, reason, NOW)
    assert [refused.reason for refused in refusals.of(1, NOW)] == ["spam", "blocked", "bot"]


def test_a_day_later_they_are_forgotten_but_for_the_totals() -> None:
    refusals = Refusals()
    refusals.count(1, "bot", NOW)
    refusals.count(1, "bot", NOW + 3_600)
    assert refusals.of(1, NOW + DAY_S - 300) == [Refused("bot", 2, int(NOW) + 3_600)]
    assert refusals.of(1, NOW + DAY_S + 300) == [Refused("bot", 1, int(NOW) + 3_600)]
    assert refusals.of(1, NOW + 2 * DAY_S) == []
    refusals.count(1, "bot", NOW + 2 * DAY_S)
    assert refusals.of(1, NOW + 2 * DAY_S) == [Refused("bot", 1, int(NOW) + 2 * DAY_S)]
    assert refusals.totals() == {"bot": 3}


def test_many_days_take_no_more_room_than_one() -> None:
    refusals = Refusals()
    for minute in range(3 * 1440):
        refusals.count(1, "bot", NOW + 60 * minute)
    now = NOW + 60 * (3 * 1440 - 1)
    # The day begins at full five minutes.
    assert refusals.of(1, now) == [Refused("bot", 1443, int(now))]


def test_a_clock_set_back_loses_no_count() -> None:
    refusals = Refusals()
    refusals.count(1, "bot", NOW)
    refusals.count(1, "bot", NOW - 3_600)
    assert refusals.of(1, NOW) == [Refused("bot", 2, int(NOW) - 3_600)]


def test_all_websites_are_counted_together() -> None:
    refusals = Refusals()
    assert refusals.of_all(NOW) == []
    refusals.count(1, "spam", NOW - 2 * DAY_S)
    for second, (website, reason) in enumerate(
        [(2, "bot"), (1, "bot"), (None, "malformed"), (2, "blocked")]
    ):
        refusals.count(website, reason, NOW + second)
    assert refusals.of_all(NOW + 3) == [
        Refused("bot", 2, int(NOW) + 1),
        Refused("blocked", 1, int(NOW) + 3),
        Refused("malformed", 1, int(NOW) + 2),
    ]


def test_many_websites_are_no_more_work_together_than_one() -> None:
    one, many = Refusals(), Refusals()
    for website in range(100):
        one.count(1, "bot", NOW)
        many.count(website, "bot", NOW)
    assert one.of_all(NOW) == many.of_all(NOW) == [Refused("bot", 100, int(NOW))]
    assert calls_of(lambda: many.of_all(NOW)) == calls_of(lambda: one.of_all(NOW))


def test_a_website_that_is_no_more_is_forgotten() -> None:
    refusals = Refusals()
    refusals.count(1, "bot", NOW)
    refusals.forget(1)
    refusals.forget(2)
    assert refusals.of(1, NOW) == []
    assert refusals.of_all(NOW) == [Refused("bot", 1, int(NOW))]
    assert refusals.totals() == {"bot": 1}
