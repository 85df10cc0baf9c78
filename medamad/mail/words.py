"""Figures, dates and names as a language writes them, and the sentences of what changed."""

import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from datetime import date, datetime, tzinfo
from decimal import Decimal
from functools import cache
from typing import Final, Self

from attrs import frozen
from babel.core import Locale
from babel.dates import format_date, format_datetime, format_interval, format_skeleton
from babel.numbers import format_currency, format_decimal, format_percent
from babel.units import format_unit

from medamad.domain.annotations import Annotation
from medamad.domain.dimensions import OTHER, UNKNOWN
from medamad.domain.instants import is_day
from medamad.domain.subscriptions import Every
from medamad.mail.figures import Figure
from medamad.mail.spans import Span
from medamad.mail.texts import TEXTS, Texts
from medamad.query.changes import Change, largest_parts

_LONGEST: Final = 80
"""Longer names are cut, since a mail is no table."""
_STEERING: Final = frozenset(
    "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
)
"""Characters that reorder the text around them."""
_COUNTS: Final = ("visitors", "visits", "pageviews", "conversions")
"""The measures whose change is a percentage of what was."""
_OF_CHANGES: Final = {"source": "referrers", "entry_page": "pages", "country": "countries"}
"""The list that a dimension of changes is named as in."""
_MINUTE_S: Final = 60
_HOUR_S: Final = 3_600


@frozen
class Words:
    """The words of one language."""

    texts: Texts

    @classmethod
    def of(cls, language: str) -> Self:
        """Return the words of one of `domain.accounts.LANGUAGES`."""
        return cls(TEXTS[language])

    @property
    def _locale(self) -> str:
        return self.texts.locale

    def number(self, number: float) -> str:
        """Return a number."""
        return format_decimal(number, locale=self._locale)

    def money(self, amount: Decimal, currency: str) -> str:
        """Return an amount."""
        return format_currency(amount, currency, locale=self._locale)

    def percent(self, share: float) -> str:
        """Return a share with at most one decimal."""
        return format_percent(round(share, 3), locale=self._locale, decimal_quantization=False)

    def figure(self, measure: str, value: float | None) -> str:
        """Return a figure of a measure; a dash for an unknown one."""
        if value is None:
            return "–"
        if measure.endswith("_percentage"):
            return self.percent(value)
        return self._duration(value) if measure.endswith("_duration") else self.number(value)

    def _duration(self, duration_ms: float) -> str:
        """Return a duration in its two largest units, as the dashboard does."""
        seconds = round(duration_ms / 1000)
        if seconds >= _HOUR_S:
            hours, seconds = divmod(seconds, _HOUR_S)
            return f"{self._unit(hours, 'hour')} {self._unit(seconds // _MINUTE_S, 'minute')}"
        minutes, seconds = divmod(seconds, _MINUTE_S)
        rest = self._unit(seconds, "second")
        return f"{self._unit(minutes, 'minute')} {rest}" if minutes else rest

    def _unit(self, value: int, unit: str) -> str:
        symbol = self.texts.units.get(unit)
        if symbol is not None:
            return f"{self.number(value)}\u00a0{symbol}"
        return format_unit(value, f"duration-{unit}", "narrow", locale=self._locale)

    def change(self, figure: Figure) -> str:
        """Return by how much a count changed, in percent; "" where that says nothing."""
        if figure.measure not in _COUNTS or not figure.before or figure.now is None:
            return ""
        change = round(figure.now / figure.before - 1, 2)
        sign = "+" if change > 0 else "−" if change < 0 else "±"
        return sign + format_percent(abs(change), locale=self._locale)

    def span(self, span: Span) -> str:
        """Return the days of a week, or the name of a month."""
        if span.every is Every.MONTH:
            return format_skeleton("yMMMM", span.first, locale=self._locale)
        return format_interval(span.first, span.last, "yMMMd", locale=self._locale)

    def day(self, day: date) -> str:
        """Return a day with its weekday."""
        return format_skeleton("MMMEd", day, locale=self._locale)

    def weekday(self, day: date) -> str:
        """Return the weekday of a day, abbreviated."""
        return format_date(day, "ccc", locale=self._locale)

    def moment(self, unix_s: int, zone: tzinfo) -> str:
        """Return a day and a time in a time zone."""
        moment = datetime.fromtimestamp(unix_s, zone)
        return format_datetime(moment, "short", tzinfo=zone, locale=self._locale)

    def time_of(self, annotation: Annotation, zone: tzinfo) -> str:
        """Return the day of an annotation, or its day and time in a time zone."""
        if is_day(annotation.time):
            return self.day(date.fromisoformat(annotation.time))
        return self.moment(annotation.start_s(zone), zone)

    def name(self, of: str, name: str) -> str:
        """Return the name of a row of a list, or of a part of a dimension of changes."""
        texts, of = self.texts, _OF_CHANGES.get(of, of)
        if not name:
            return texts.direct if of == "referrers" else texts.none
        if name == OTHER:
            return texts.other
        if name == UNKNOWN and of in ("countries", "device"):
            return texts.unknown
        if of == "countries":
            territories: Mapping[str, str] = Locale(self._locale).territories
            return territories.get(_country_codes().get(name, ""), name)
        return printable(texts.devices.get(name, name) if of == "device" else name)

    def sentences(self, measure: str, every: Every, found: Change) -> Iterator[str]:
        """Return what changed: a sentence on the total, and one for each of the largest parts."""
        texts, called = self.texts, self.texts.measures[measure]
        counts = self._counts(found)
        if not found["difference"]:
            yield texts.same.format(measure=called, **counts)
        elif found["by_chance"]:
            yield texts.by_chance.format(measure=called, **counts)
        else:
            form = texts.more if found["difference"] > 0 else texts.fewer
            yield form.format(measure=called, than=texts.than[every], **counts)
            if found["by_chance"] is None:
                yield texts.chance_unknown
        for parts, change in largest_parts(found):
            named = [(part["dimension"], part["name"]) for part in parts]
            yield self.part_sentence(named, change["before"], change["now"])

    def part_sentence(self, parts: Iterable[tuple[str, str]], before: int, now: int) -> str:
        """Return by how much what is in each of some parts changed."""
        texts = self.texts
        form = texts.part_more if now > before else texts.part_fewer
        names = [
            texts.part.format(name=self.name(of, name), dimension=texts.dimensions[of])
            for of, name in parts
        ]
        return form.format(parts=", ".join(names), **self._counts({"before": before, "now": now}))

    def _counts(self, change: Mapping[str, int]) -> dict[str, str]:
        before, now = change["before"], change["now"]
        return {
            "n": self.number(abs(now - before)),
            "now": self.number(now),
            "before": self.number(before),
        }


def printable(name: str) -> str:
    """Return a name that visitors may have sent, without what could upset the text around it."""
    shown = plain(name)
    return shown if len(shown) <= _LONGEST else shown[: _LONGEST - 1] + "…"


def plain(text: str) -> str:
    """Return a text of one line without characters that reorder what is around it."""
    return "".join(
        " " if unicodedata.category(each) == "Cc" or each in _STEERING else each for each in text
    )


@cache
def _country_codes() -> dict[str, str]:
    return {name: code for code, name in Locale("en").territories.items()}
