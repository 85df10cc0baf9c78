"""Routes that are made with less work: a site has a hundred of them, and most tests make a site."""

from collections.abc import Callable
from typing import Any, NoReturn

from werkzeug.routing import Rule


def make_routes_fast(set_attribute: Callable[[Any, str, Any], None]) -> None:
    """Make Werkzeug parse each rule once, and compile no functions that nobody calls."""
    parse = Rule._parse_rule
    known: dict[str, tuple[list[Any], dict[str, Any]]] = {}

    def parsed(rule: Rule, text: str) -> list[Any]:
        if text not in known:
            known[text] = list(parse(rule, text)), dict(rule._converters)
        parts, converters = known[text]
        rule._converters.update(converters)
        rule.arguments.update(converters)
        return parts

    set_attribute(Rule, "_parse_rule", parsed)
    set_attribute(Rule, "_compile_builder", lambda *_, **__: _build_no_url)


def _build_no_url(*_: object, **__: object) -> NoReturn:
    raise AssertionError("nothing builds a URL from a rule")
