import pytest

from medamad.build import shipped_file
from medamad.lookup.robots import Crawler, Purpose, Robot, Robots, public_list, read_robots


@pytest.mark.parametrize(
    ("pattern", "name"),
    [
        (r"Googlebot\/", "Googlebot"),
        ("[cC]laude[bB]ot", "ClaudeBot"),
        ("AdsBot-Google([^-]|$)", "AdsBot-Google"),
        (r"Mediapartners \(Googlebot\)", "Mediapartners"),
        (r"(^| )sentry\/", "sentry"),
        ("Ahrefs(Bot|SiteAudit)", "AhrefsBot"),
        (r"ContextualBot[\s\S]*outcomes\.net", "ContextualBot"),
        ("Automaton|Newsify Feed Fetcher", "Automaton"),
        (r"archive\.org_bot", "archive.org_bot"),
        ("^curl", "curl"),
        (r"dbot\)", "dbot"),
    ],
)
def test_a_name_is_what_the_pattern_always_matches(pattern: str, name: str) -> None:
    assert Crawler(pattern).name == name


def test_every_entry_of_the_public_list_has_a_plain_name() -> None:
    names = [crawler.name for crawler in public_list()]
    assert len(names) > 1_000
    assert not [name for name in names if not name or set(name) & set(r"\[]|^$*?{}()")]


def test_the_table_knows_robots_of_the_public_list() -> None:
    table = read_robots(shipped_file("robots.toml").read_text("utf-8"))
    assert not table.keys() - {crawler.name.lower() for crawler in public_list()}
    assert {robot.purpose for robot in table.values()} == set(Purpose) - {Purpose.LIBRARY}


def test_a_purpose_follows_from_the_tags_unless_the_table_has_the_name() -> None:
    robots = Robots(read_robots('"GPTBot" = { operator = "OpenAI", purpose = "ai-answer" }'))
    assert robots.of("gptBOT") == Robot("OpenAI", Purpose.AI_ANSWER)
    assert robots.of("curl") == Robot("", Purpose.LIBRARY)
    assert robots.of("UptimeRobot") == Robot("", Purpose.MONITORING)
    assert robots.of("Bytespider") == Robot("", Purpose.AI_TRAINING)
    assert robots.of("AhrefsBot") == robots.of("nobody") == Robot("", Purpose.UNKNOWN)
