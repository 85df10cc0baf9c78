import pytest

from medamad.ingest.user_agent import BotRule, is_bot

PERSON = (
    "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) "
    "Chrome/120.0.0.0 Safari/537.36"
)
HEADLESS = PERSON.replace("Chrome", "HeadlessChrome")


@pytest.mark.parametrize(
    ("user_agent", "ignored_by"),
    [
        (PERSON, set()),
        ("Googlebot/2.1", {"declared", "strict"}),
        (HEADLESS, {"declared", "strict"}),
        ("curl/8.0.1", {"strict"}),
        ("MyScript/1.0", {"strict"}),
        ("", {"strict"}),
    ],
)
@pytest.mark.parametrize("rule", ["declared", "strict", "off"])
def test_what_is_ignored_depends_on_the_rule(
    user_agent: str, ignored_by: set[BotRule], rule: BotRule
) -> None:
    assert is_bot(user_agent, rule) is (rule in ignored_by)
