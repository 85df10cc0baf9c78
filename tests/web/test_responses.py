import msgspec
import pytest

from medamad.web.responses import json_response


@pytest.mark.parametrize("count", [0, 1, 99, 100, 101, 200, 250])
def test_rows_are_encoded_as_they_are_however_many(count: int) -> None:
    rows = [{"path": f"/{number}\N{GRINNING FACE}", "visitors": number} for number in range(count)]
    assert json_response(rows).body == msgspec.json.encode(rows)
