from support.call_counts import calls_of

from medamad.ingest.rejections import Rejection, Rejections

NOW = 1_700_000_000.0
DAY_S = 86_400


def test_refusals_are_counted_by_website_and_reason() -> None:
    rejections = Rejections()
    for website, reason in [(1, "bot"), (1, "spam"), (1, "bot"), (2, "bot"), (None, "malformed")]:
        rejections.count(website, reason, NOW)
    assert rejections.of(1, NOW) == [
        Rejection("bot", 2, int(NOW)),
        Rejection("spam", 1, int(NOW)),
    ]
    assert rejections.of(2, NOW) == [Rejection("bot", 1, int(NOW))]
    assert rejections.of(3, NOW) == []
    assert rejections.of(None, NOW) == [Rejection("malformed", 1, int(NOW))]
    assert rejections.totals() == {"bot": 3, "spam": 1, "malformed": 1}


def test_the_most_frequent_reason_comes_first_and_ties_by_name() -> None:
    rejections = Rejections()
    for reason in ["spam", "bot", "blocked", "spam"]:
        rejections.count(1, reason, NOW)
    assert [refused.reason for refused in rejections.of(1, NOW)] == ["spam", "blocked", "bot"]


def test_a_day_later_they_are_forgotten_but_for_the_totals() -> None:
    rejections = Rejections()
    rejections.count(1, "bot", NOW)
    rejections.count(1, "bot", NOW + 3_600)
    assert rejections.of(1, NOW + DAY_S - 300) == [Rejection("bot", 2, int(NOW) + 3_600)]
    assert rejections.of(1, NOW + DAY_S + 300) == [Rejection("bot", 1, int(NOW) + 3_600)]
    assert rejections.of(1, NOW + 2 * DAY_S) == []
    rejections.count(1, "bot", NOW + 2 * DAY_S)
    assert rejections.of(1, NOW + 2 * DAY_S) == [Rejection("bot", 1, int(NOW) + 2 * DAY_S)]
    assert rejections.totals() == {"bot": 3}


def test_many_days_take_no_more_room_than_one() -> None:
    rejections = Rejections()
    for minute in range(3 * 1440):
        rejections.count(1, "bot", NOW + 60 * minute)
    now = NOW + 60 * (3 * 1440 - 1)
    # The day begins at full five minutes.
    assert rejections.of(1, now) == [Rejection("bot", 1443, int(now))]


def test_a_clock_set_back_loses_no_count() -> None:
    rejections = Rejections()
    rejections.count(1, "bot", NOW)
    rejections.count(1, "bot", NOW - 3_600)
    assert rejections.of(1, NOW) == [Rejection("bot", 2, int(NOW) - 3_600)]


def test_all_websites_are_counted_together() -> None:
    rejections = Rejections()
    assert rejections.of_all(NOW) == []
    rejections.count(1, "spam", NOW - 2 * DAY_S)
    for second, (website, reason) in enumerate(
        [(2, "bot"), (1, "bot"), (None, "malformed"), (2, "blocked")]
    ):
        rejections.count(website, reason, NOW + second)
    assert rejections.of_all(NOW + 3) == [
        Rejection("bot", 2, int(NOW) + 1),
        Rejection("blocked", 1, int(NOW) + 3),
        Rejection("malformed", 1, int(NOW) + 2),
    ]


def test_many_websites_are_no_more_work_together_than_one() -> None:
    one, many = Rejections(), Rejections()
    for website in range(100):
        one.count(1, "bot", NOW)
        many.count(website, "bot", NOW)
    assert one.of_all(NOW) == many.of_all(NOW) == [Rejection("bot", 100, int(NOW))]
    assert calls_of(lambda: many.of_all(NOW)) == calls_of(lambda: one.of_all(NOW))


def test_a_website_that_is_no_more_is_forgotten() -> None:
    rejections = Rejections()
    rejections.count(1, "bot", NOW)
    rejections.forget(1)
    rejections.forget(2)
    assert rejections.of(1, NOW) == []
    assert rejections.of_all(NOW) == [Rejection("bot", 1, int(NOW))]
    assert rejections.totals() == {"bot": 1}
