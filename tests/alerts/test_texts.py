"""What alerts say: in each language the same facts, and whole sentences."""

from string import Formatter
from zoneinfo import ZoneInfo

import pytest

from medamad.alerts.texts import SENTENCES, Speaker
from medamad.domain.accounts import LANGUAGES
from medamad.domain.alerts import SERVICE_KINDS, WEBSITE_KINDS, Facts, Rule

KINDS = (*WEBSITE_KINDS, *SERVICE_KINDS)


def named(text: str) -> set[str]:
    return {name for _, name, _, _ in Formatter().parse(text) if name}


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_kind_has_a_sentence_with_the_same_facts(language: str) -> None:
    assert set(SENTENCES[language]) == {*KINDS, "test"}
    for kind, texts in SENTENCES[language].items():
        english = SENTENCES["en"][kind]
        assert [named(text) for text in texts] == [named(text) for text in english]
        assert language == "en" or not set(texts) & set(english)


def rule_of(kind: str, threshold: int | None = None) -> Rule:
    return Rule(id="rule", kind=kind, threshold=threshold, url="https://example.com/")


SPIKE: Facts = {"hour": 1_704_106_800, "views": 12_345, "usual": 1_234, "percent": 900}


@pytest.mark.parametrize(
    ("language", "text"),
    [
        (
            "en",
            (
                "Views of example.com in the hour from Jan 1, 2024, 12:00:00\u202fPM: 12,345, 900%"
                " more than usual at this hour of the week (1,234)."
            ),
        ),
        (
            "de",
            (
                "Seitenaufrufe von example.com in der Stunde ab 01.01.2024, 12:00:00: 12.345,"
                " 900 % mehr als sonst zu dieser Stunde der Woche (1.234)."
            ),
        ),
        (
            "zh",
            (
                "example.com 从 2024年1月1日 12:00:00 起的一小时有 12,345 次浏览，"  # noqa: RUF001
                "比每周此时的通常水平（1,234）多 900%。"  # noqa: RUF001
            ),
        ),
    ],
)
def test_numbers_and_times_are_those_of_the_language_and_zone(language: str, text: str) -> None:
    speaker = Speaker(language, ZoneInfo("Europe/Berlin"))
    assert speaker.sentence(rule_of("spike", 50), "began", SPIKE, "example.com") == text


def test_a_test_says_what_would_be_said() -> None:
    speaker, rule = Speaker("en", ZoneInfo("UTC")), rule_of("disk", 5)
    assert speaker.test(rule, [{"free": 4}], "") == (
        "This is a test. At the moment, the alert would say: The disk of the store has 4 GiB left."
    )
    assert speaker.test(rule, [], "") == (
        "This is a test. At the moment, the alert has nothing to report."
    )
