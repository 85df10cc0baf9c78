import pytest
from stats.made import SOURCES

from medamad.stats import naming
from medamad.stats.naming import Naming


@pytest.mark.parametrize(
    ("name_of", "text", "name"),
    [
        (naming.as_stored, "en-GB", "en-GB"),
        (naming.source, "google.de/search", "Google"),
        (naming.source, "", ""),
        (naming.source, "(other)", "(other)"),
        (naming.country, "DE", "Germany"),
        (naming.country, "", "Unknown"),
        (naming.language, "en-GB", "English"),
        (naming.language, "", "Unknown"),
        (naming.locale, "en-GB", "British English"),
        (naming.locale, "(other)", "(other)"),
    ],
)
def test_names(name_of: Naming, text: str, name: str) -> None:
    assert name_of(text, SOURCES) == name
