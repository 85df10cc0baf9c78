from medamad.query.result import NO_GAPS, Gap, Gaps


def test_the_days_of_a_gap_ascend() -> None:
    gaps = Gaps({(Gap.INTERVAL, 3), (Gap.INTERVAL, 1), (Gap.BOUNCES, 2)})
    assert gaps.days(Gap.INTERVAL) == [1, 3]
    assert gaps.days(Gap.DURATIONS) == []


def test_a_day_that_is_left_out_has_no_other_gaps() -> None:
    gaps = Gaps({(Gap.FIGURES, 1), (Gap.INTERVAL, 1), (Gap.INTERVAL, 2)})
    assert gaps.days(Gap.FIGURES) == [1]
    assert gaps.days(Gap.INTERVAL) == [2]


def test_gaps_of_several_results_are_joined() -> None:
    joined = NO_GAPS | Gaps({(Gap.DURATIONS, 1)}) | Gaps({(Gap.FIGURES, 1)})
    assert bool(joined)
    assert not NO_GAPS
    assert joined.days(Gap.DURATIONS) == []
