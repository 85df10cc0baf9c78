"""What alerts say: in each language the same facts, and whole sentences."""

from string import Formatter
from zoneinfo import ZoneInfo

import pytest

from medamad.alerts.texts import SENTENCES, Speaker
from medamad.domain.accounts import LANGUAGES
from medamad.domain.alerts import (
    SERVICE_KINDS,
    WEBSITE_KINDS,
    ChangedPart,
    Facts,
    Part,
    Rule,
)

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


@pytest.mark.parametrize(
    ("language", "text"),
    [
        (
            "en",
            (
                " Visits in this hour, against the same hour a week before:"
                " Google (referrer), /guide (entry page): 1,195 more (1,200 instead of 5)."
                " Unknown (country): 3 fewer (0 instead of 3)."
            ),
        ),
        (
            "de",
            (
                " Besuche in dieser Stunde, gegenüber derselben Stunde der Vorwoche:"
                " Google (Referrer), /guide (Einstiegsseite): 1.195 mehr (1.200 statt 5)."
                " Unbekannt (Land): 3 weniger (0 statt 3)."
            ),
        ),
    ],
)
def test_the_parts_that_changed_are_said_at_the_beginning(language: str, text: str) -> None:
    pair = (Part("source", "Google"), Part("entry_page", "/guide"))
    parts = [
        ChangedPart(parts=pair, before=5, now=1_200),
        ChangedPart(parts=(Part("country", "Unknown"),), before=3, now=0),
    ]
    speaker, rule = Speaker(language, ZoneInfo("UTC")), rule_of("spike", 50)
    facts: Facts = {**SPIKE, "parts": parts}
    for none in (SPIKE, {**SPIKE, "parts": []}):
        usual = speaker.sentence(rule, "began", none, "example.com")
        assert speaker.sentence(rule, "began", facts, "example.com") == usual + text
        ended = speaker.sentence(rule, "ended", none, "example.com")
        assert speaker.sentence(rule, "ended", facts, "example.com") == ended


@pytest.mark.parametrize("language", LANGUAGES)
def test_parts_are_said_in_every_language(language: str) -> None:
    parts = [ChangedPart(parts=(Part("source", "a.example"),), before=5, now=12)]
    speaker = Speaker(language, ZoneInfo("UTC"))
    said = speaker.sentence(rule_of("drop", 50), "began", {**SPIKE, "parts": parts}, "example.com")
    alone = speaker.sentence(rule_of("drop", 50), "began", SPIKE, "example.com")
    assert said.startswith(f"{alone} ")
    assert "a.example" in said.removeprefix(alone)
    assert "{" not in said


def test_a_test_says_what_would_be_said() -> None:
    speaker, rule = Speaker("en", ZoneInfo("UTC")), rule_of("disk", 5)
    assert speaker.test(rule, [{"free": 4}], "") == (
        "This is a test. At the moment, the alert would say: The disk of the store has 4 GiB left."
    )
    assert speaker.test(rule, [], "") == (
        "This is a test. At the moment, the alert has nothing to report."
    )
