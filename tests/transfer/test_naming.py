import pytest

from medamad.transfer.sources.medama import country_by_name, locale_by_name
from medamad.transfer.sources.normalize import (
    country_code,
    normalize_browser,
    normalize_device,
    normalize_system,
)


@pytest.mark.parametrize(
    ("text", "version", "wanted"),
    [
        ("crios", "", ("Chrome", "")),
        ("Chrome 79.0", "", ("Chrome", "79")),
        ("Safari", "16.3", ("Safari", "16")),
        ("Microsoft Edge", "111.0", ("Edge", "111")),
        ("Vivaldi 6.5.3", "", ("Vivaldi", "6")),
        ("(unknown)", "", ("Unknown", "")),
    ],
)
def test_names_of_browsers(text: str, version: str, wanted: tuple[str, str]) -> None:
    assert normalize_browser(text, version) == wanted


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("Mac OS", ("macOS", "")),
        ("macOS 10.15", ("macOS", "10")),
        ("Windows 10", ("Windows", "10")),
        ("Android OS", ("Android", "")),
        ("iOS 17.1", ("iOS", "17")),
        ("Windows 8.1", ("Windows", "8")),
        ("Windows XP", ("Windows", "XP")),
        ("Windows Vista", ("Windows", "Vista")),
        ("Windows ME", ("Windows", "ME")),
        ("Windows Server 2003", ("Windows", "2003")),
        ("Windows Mobile", ("Windows Phone", "")),
        ("Linux Ubuntu", ("Linux", "")),
        ("", ("Unknown", "")),
    ],
)
def test_names_of_systems(text: str, wanted: tuple[str, str]) -> None:
    assert normalize_system(text) == wanted


def test_versions_beside_the_name_of_a_system() -> None:
    assert normalize_system("Windows", "XP") == ("Windows", "XP")
    assert normalize_system("Windows", "10") == ("Windows", "10")


@pytest.mark.parametrize(
    ("code", "country"),
    [
        ("ZZ", ""),
        ("xx", ""),
        ("de-BY", "DE"),
        ("UK", "GB"),
        ("UK-ENG", "GB"),
        ("el", "GR"),
        ("Germany", ""),
    ],
)
def test_countries_are_read_from_codes(code: str, country: str) -> None:
    assert country_code(code) == country


def test_names_of_devices_countries_and_languages() -> None:
    assert [normalize_device(text) for text in ("Laptop", "tablet", "toaster")] == [
        "Desktop",
        "Tablet",
        "Unknown",
    ]
    assert [country_by_name(name) for name in ("Germany", "GB", "Atlantis")] == ["DE", "GB", ""]
    assert locale_by_name("English", "British English") == "en-GB"
    assert locale_by_name("German", "German (Germany)") == "de-DE"
    assert locale_by_name("German", "") == "de"
    assert locale_by_name("Klingonese", "") == ""
