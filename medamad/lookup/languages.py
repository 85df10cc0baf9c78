"""Languages: which one a browser asks for, and what a language or locale is called."""

import re
from functools import cache, lru_cache
from typing import Final, Literal, TypeAlias

from babel.core import Locale, get_global

from medamad.domain.dimensions import OTHER, UNKNOWN

_TAG: Final = re.compile(
    r"([a-z]{2,3}) (?:-[a-z]{3}){0,3} (?:-([a-z]{4}))? (?:-([a-z]{2}|[0-9]{3}))?"
    r"(?:-[a-z0-9]{1,8})* \Z",
    re.ASCII | re.IGNORECASE | re.VERBOSE,
)
"""A language tag (RFC 5646): language, script and region; the rest is ignored."""

_Aliases: TypeAlias = Literal["language_aliases", "script_aliases", "territory_aliases"]

_NO_LANGUAGE: Final = frozenset({"und", "mul", "zxx", "mis"})
_MAX_HEADER: Final = 512
"""Characters of an Accept-Language that are parsed; browsers send a tenth as many."""


def locale_of(accept_language: str) -> str:
    """Return the locale that an Accept-Language header asks for first, such as "en-GB".

    A BCP 47 tag of language, script and region in their usual case, with current codes; entries
    that are malformed, unknown or excluded (`q=0`) are skipped; "" if none is left.
    """
    return _first_locale(accept_language[:_MAX_HEADER])


def language_name(locale: str) -> str:
    """Return the English name of a locale's language: "English" for "en-GB"."""
    if not locale:
        return UNKNOWN
    language = locale.partition("-")[0]
    return locale if locale == OTHER else language_names().get(language, language)


@lru_cache(4_096)
def locale_name(locale: str) -> str:
    """Return CLDR's English name of a locale: "British English", "German (Germany)".

    The longest prefix that has a name is used; the other subtags follow in brackets.
    """
    if not locale:
        return UNKNOWN
    if locale == OTHER:
        return locale
    subtags = locale.split("-")
    for length in range(len(subtags), 0, -1):
        if name := language_names().get("_".join(subtags[:length])):
            rest = [_subtag_name(subtag) for subtag in subtags[length:]]
            return f"{name} ({', '.join(rest)})" if rest else name
    return locale


@lru_cache(4_096)
def _first_locale(accept_language: str) -> str:
    # The daemon starts without these. To import the package waits until another thread has loaded
    # all of it; to import only its modules would not, and could meet half-loaded ones.
    import werkzeug  # noqa: F401, PLC0415
    from werkzeug.datastructures import LanguageAccept  # noqa: PLC0415
    from werkzeug.http import parse_accept_header  # noqa: PLC0415

    for tag, quality in parse_accept_header(accept_language, LanguageAccept):
        if quality > 0 and (locale := _normal(tag)):
            return locale
    return ""


def forget_headers() -> None:
    """Forget which Accept-Language headers have been seen."""
    _first_locale.cache_clear()


def _normal(tag: str) -> str:
    """Return the canonical form of a language tag, "" unless its language is known."""
    match = _TAG.match(tag.strip().replace("_", "-"))
    if match is None:
        return ""
    language, script, region = match.groups(default="")
    language = _current("language_aliases", language.lower(), language_names())
    if not language or language in _NO_LANGUAGE:
        return ""
    script = _current("script_aliases", script.title(), _scripts())
    region = _current("territory_aliases", region.upper(), _territories())
    return "-".join(subtag for subtag in (language, script, region) if subtag)


def _current(aliases: _Aliases, code: str, known: dict[str, str]) -> str:
    """Return a code if it is known, else the known code that replaced it, else ""."""
    if code in known:
        return code
    successors = get_global(aliases).get(code, "")
    successor = successors if isinstance(successors, str) else successors[0]
    return successor if successor in known else ""


def _subtag_name(subtag: str) -> str:
    return _scripts().get(subtag) or _territories().get(subtag, subtag)


@cache
def language_names() -> dict[str, str]:
    """Return CLDR's English names of languages, by code."""
    return dict(Locale("en").languages)


@cache
def _scripts() -> dict[str, str]:
    return dict(Locale("en").scripts)


@cache
def _territories() -> dict[str, str]:
    return dict(Locale("en").territories)
