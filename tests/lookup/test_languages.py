import pytest
from hypothesis import given
from hypothesis import strategies as st

from medamad.lookup.languages import language_name, locale_name, locale_of


@pytest.mark.parametrize(
    ("header", "locale"),
    [
        ("en-GB,en;q=0.9", "en-GB"),
        ("de", "de"),
        ("en;q=0.5, fr;q=0.8", "fr"),
        ("fr;q=0.8, en;q=0.8", "fr"),
        ("zh-hans-cn", "zh-Hans-CN"),
        ("EN-us", "en-US"),
        ("en_US", "en-US"),
        ("es-419", "es-419"),
        # Codes that have been replaced, and subtags that are let go.
        ("iw-IL", "he-IL"),
        ("en-UK", "en-GB"),
        ("eng", "en"),
        ("zh-cmn-Hans-CN", "zh-Hans-CN"),
        ("de-DE-1996", "de-DE"),
        ("ca-ES-valencia", "ca-ES"),
        ("en-US-u-ca-buddhist", "en-US"),
        ("en-XQ", "en"),
        # Entries that are passed over.
        ("*", ""),
        ("*;q=0.5, nl", "nl"),
        ("de;q=0, en;q=0.1", "en"),
        ("en;q=abc, fr", "fr"),
        ("garbage!!, fr", "fr"),
        ("\x00, fr", "fr"),
        ("xx, fr", "fr"),
        ("und, mul, zxx, fr", "fr"),
        ("i-klingon", ""),
        ("", ""),
        (";;;,,,", ""),
        ("en-GB" + "-x" * 200, "en-GB"),
    ],
)
def test_the_locale_is_the_first_acceptable_entry(header: str, locale: str) -> None:
    assert locale_of(header) == locale


def test_only_the_beginning_of_a_long_header_is_read() -> None:
    assert locale_of("!," * 200 + "de," + "en," * 10_000) == "de"
    assert locale_of("!," * 10_000 + "de") == ""


@given(st.text() | st.text("en-GBzhHasC,;q=0.19 *_", max_size=40))
def test_any_header_yields_a_locale_with_a_name(header: str) -> None:
    locale = locale_of(header)
    assert locale_name(locale)
    assert language_name(locale)
    assert locale_of(locale) == locale


@pytest.mark.parametrize(
    ("locale", "language", "name"),
    [
        ("en", "English", "English"),
        ("en-GB", "English", "British English"),
        ("en-NZ", "English", "English (New Zealand)"),
        ("de-AT", "German", "Austrian German"),
        ("pt-BR", "Portuguese", "Brazilian Portuguese"),
        ("zh-Hans-CN", "Chinese", "Simplified Chinese (China)"),
        ("sr-Latn-RS", "Serbian", "Serbian (Latin, Serbia)"),
        ("es-419", "Spanish", "Latin American Spanish"),
        ("", "Unknown", "Unknown"),
        ("(other)", "(other)", "(other)"),
        ("qqq", "qqq", "qqq"),
    ],
)
def test_languages_and_locales_have_cldr_s_english_names(
    locale: str, language: str, name: str
) -> None:
    assert language_name(locale) == language
    assert locale_name(locale) == name
