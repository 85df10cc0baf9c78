"""Whether a hit comes from a program and is to be ignored, by the configured rule."""

from typing import Literal, TypeAlias

from medamad.collect.agents import describe
from medamad.collect.crawlers import is_crawler, is_library
from medamad.model.dimensions import UNKNOWN

BotRule: TypeAlias = Literal["declared", "strict", "off"]
"""What to ignore: what declares itself a crawler; also HTTP libraries and unknowns; nothing."""


def is_bot(user_agent: str, rule: BotRule) -> bool:
    """Tell whether a hit with this User-Agent is ignored (contract, section 4).

    A plain HTTP client or an unknown agent runs no tracker by accident: it is a script that means
    to report, and only the strict rule ignores it.
    """
    match rule:
        case "off":
            return False
        case "declared":
            return is_crawler(user_agent)
        case "strict":
            return (
                is_crawler(user_agent)
                or is_library(user_agent)
                or describe(user_agent).browser == UNKNOWN
            )
