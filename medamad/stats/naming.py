"""What the stored text of a dimension is called in questions and answers."""

from collections.abc import Callable
from typing import TypeAlias

from medamad.vocabulary.countries import country_name
from medamad.vocabulary.languages import language_name, locale_name
from medamad.vocabulary.sources import Sources

Naming: TypeAlias = Callable[[str, Sources], str]
"""Gives the name of a stored text. Several texts may share one."""


def as_stored(text: str, _sources: Sources) -> str:
    """Give the text itself."""
    return text


def source(text: str, sources: Sources) -> str:
    """Give the source of a referrer: `Google` for `google.co.uk/search`."""
    return sources.name_of(text)


def country(text: str, _sources: Sources) -> str:
    """Give the name of a country by its ISO code."""
    return country_name(text)


def language(text: str, _sources: Sources) -> str:
    """Give the language of a locale: `English` for `en-GB`."""
    return language_name(text)


def locale(text: str, _sources: Sources) -> str:
    """Give the name of a locale: `British English` for `en-GB`."""
    return locale_name(text)
