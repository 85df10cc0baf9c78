import msgspec
import pytest

from medamad.query.request import NO_GAPS, Gap, Gaps
from medamad.web.responses import json_response, partial_headers


@pytest.mark.parametrize("count", [0, 1, 99, 100, 101, 200, 250])
def test_any_number_of_rows_is_encoded_as_one_list(count: int) -> None:
    rows = [{"path": f"/{number}\N{GRINNING FACE}", "visitors": number} for number in range(count)]
    assert json_response(rows).body == msgspec.json.encode(rows)


def test_a_complete_result_has_no_partial_header() -> None:
    assert partial_headers(NO_GAPS) == ()


def test_the_partial_header_has_the_first_and_last_day_of_each_gap() -> None:
    days = {
        Gap.FIGURES: (20_000,),
        Gap.INTERVAL: (20_000, 19_000, 19_400),
        Gap.DURATIONS: (20_000, 0),
        Gap.BOUNCES: (1, 0),
        Gap.DAMAGED: (20_000, 20_001),
    }
    gaps = Gaps((gap, day) for gap, of_gap in days.items() for day in of_gap)
    expected = (
        b'figures="2024-10-04/2024-10-04", interval="2022-01-08/2023-02-12", '
        b'durations="1970-01-01/1970-01-01", bounces="1970-01-01/1970-01-02", '
        b'damaged="2024-10-04/2024-10-05"'
    )
    # The other gaps of a day that is left out altogether need no mention.
    assert partial_headers(gaps) == ((b"X-Medamad-Partial", expected),)
