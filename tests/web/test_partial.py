from types import SimpleNamespace

from medamad.storage.segments.snapshot import Missed, Missing
from medamad.web.responses import partial_headers


def note(missed: Missed, missing: Missing, *days: int) -> None:
    for day in days:
        missed.note(missing, SimpleNamespace(day=day))


def test_a_whole_answer_has_no_header() -> None:
    assert partial_headers(Missed()) == ()


def test_the_first_and_the_last_day_of_each_kind_are_named() -> None:
    missed = Missed()
    note(missed, Missing.FIGURES, 20_000)
    note(missed, Missing.INTERVAL, 20_000, 19_000, 19_400)
    note(missed, Missing.DURATIONS, 20_000, 0)
    note(missed, Missing.BOUNCES, 1, 0)
    expected = (
        b'figures="2024-10-04/2024-10-04", interval="2022-01-08/2023-02-12", '
        b'durations="1970-01-01/1970-01-01", bounces="1970-01-01/1970-01-02"'
    )
    # Of a day that is left out altogether nothing else has to be said.
    assert partial_headers(missed) == ((b"X-Medamad-Partial", expected),)
