import pytest
from support.query.snapshots import SOURCES

from medamad.query import rows
from medamad.query.rows import Naming


@pytest.mark.parametrize(
    ("name_of", "text", "name"),
    [
        (rows.as_stored, "en-GB", "en-GB"),
        (rows.source, "google.de/search", "Google"),
        (rows.source, "", ""),
        (rows.source, "(other)", "(other)"),
        (rows.country, "DE", "Germany"),
        (rows.country, "", "Unknown"),
        (rows.language, "en-GB", "English"),
        (rows.language, "", "Unknown"),
        (rows.locale, "en-GB", "British English"),
        (rows.locale, "(other)", "(other)"),
    ],
)
def test_names(name_of: Naming, text: str, name: str) -> None:
    assert name_of(text, SOURCES) == name
