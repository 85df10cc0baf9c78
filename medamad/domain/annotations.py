"""What owners note about a website: a text at a day or an instant, shown on its chart."""

import re
from collections.abc import Callable, Iterable
from datetime import date, tzinfo
from typing import Final

from attrs import evolve, frozen

from medamad.domain.errors import BadRequest, NotFound
from medamad.domain.instants import is_day, parse_instant, second_as_text, second_of
from medamad.domain.texts import UNFIT_NAME
from medamad.domain.zones import day_at, start_of_day

MAX_ANNOTATIONS: Final = 1_000
"""How many annotations a website may have."""
MAX_ANNOTATION: Final = 200
"""Characters of its text."""
MAX_LINK: Final = 2_048

_LINK: Final = re.compile(
    r"https?://[^\s/?#\x00-\x1f\x7f-\x9f\ud800-\udfff][^\s\x00-\x1f\x7f-\x9f\ud800-\udfff]*\Z",
    re.IGNORECASE,
)


@frozen(kw_only=True)
class Annotation:
    """A text at a day or an instant."""

    id: str
    time: str
    """A day, as 2026-01-31, in any time zone; or a second in UTC, as 2026-01-31T18:00:00Z."""
    text: str
    link: str | None = None

    def start_s(self, zone: tzinfo) -> int:
        """Return the Unix second at which it is; a day begins by the clock of `zone`."""
        return second_of(self.time, "time", zone)

    def is_between(self, start_ms: int | None, end_ms: int | None, zone: tzinfo) -> bool:
        """Return whether it is in the period start_ms ≤ time ≤ end_ms; None is no bound.

        A day is if any of it is, by the clock of `zone`.
        """
        first_s = last_s = self.start_s(zone)
        if is_day(self.time):
            last_s = start_of_day(zone, day_at(zone, first_s) + 1) - 1
        return (start_ms is None or last_s * 1000 + 999 >= start_ms) and (
            end_ms is None or first_s * 1000 <= end_ms
        )


@frozen
class Annotations:
    """The annotations of a website, in order of time; a day is before its instants in UTC."""

    all: tuple[Annotation, ...] = ()

    def annotation(self, annotation_id: str) -> Annotation:
        """Return an annotation. Raises NotFound."""
        for each in self.all:
            if each.id == annotation_id:
                return each
        raise NotFound(f"there is no annotation {annotation_id}")

    def latest(self, name: str, now_s: float, zone: tzinfo) -> Annotation:
        """Return the latest until now whose text is a name, or begins with it as a word.

        In upper or lower case. Raises NotFound.
        """
        wanted = name.strip().casefold()
        for each in sorted(self.all, key=lambda each: each.start_s(zone), reverse=True):
            text = each.text.casefold()
            if each.start_s(zone) <= now_s and (text == wanted or text.startswith(f"{wanted} ")):
                return each
        raise NotFound(f"annotation: there is none named {name} until now")

    def with_annotation(self, annotation: Annotation) -> "Annotations":
        """Return the annotations with a new one. Raises BadRequest."""
        if len(self.all) >= MAX_ANNOTATIONS:
            raise BadRequest(
                f"annotations: a website can have {MAX_ANNOTATIONS:,}, remove one first"
            )
        return _in_order((*self.all, _checked(annotation)))

    def with_those_of(self, others: Iterable[Annotation]) -> "Annotations":
        """Return the annotations with others, those that are not there yet. Raises BadRequest."""
        known, all_ = {_content(each) for each in self.all}, self
        for each in others:
            new = _checked(each)
            if _content(new) not in known:
                known.add(_content(new))
                all_ = all_.with_annotation(new)
        return all_

    def with_changed(
        self, annotation_id: str, change: Callable[[Annotation], Annotation]
    ) -> "Annotations":
        """Return the annotations with one changed. Raises NotFound, BadRequest."""
        old = self.annotation(annotation_id)
        new = _checked(change(old))
        return _in_order(tuple(new if each == old else each for each in self.all))

    def without(self, annotation_id: str) -> "Annotations":
        """Return the annotations without one. Raises NotFound."""
        removed = self.annotation(annotation_id)
        return Annotations(tuple(each for each in self.all if each != removed))


def _content(annotation: Annotation) -> tuple[str, str, str | None]:
    return annotation.time, annotation.text, annotation.link


def _in_order(annotations: tuple[Annotation, ...]) -> Annotations:
    return Annotations(tuple(sorted(annotations, key=lambda each: each.time)))


def _checked(annotation: Annotation) -> Annotation:
    """Return an annotation with its texts as they are stored.

    Raises BadRequest naming the field.
    """
    text = annotation.text.strip()
    if not 1 <= len(text) <= MAX_ANNOTATION:
        raise BadRequest(f"text: expected 1 to {MAX_ANNOTATION} characters, got {len(text)}")
    if UNFIT_NAME.search(text):
        raise BadRequest("text: expected text of one line, without control characters")
    link = annotation.link and annotation.link.strip()
    if link and (len(link) > MAX_LINK or not _LINK.match(link)):
        raise BadRequest(
            "link: expected an address that begins with https:// or http://,"
            f" of at most {MAX_LINK:,} characters"
        )
    return evolve(annotation, time=_checked_time(annotation.time), text=text, link=link or None)


def _checked_time(text: str) -> str:
    try:
        if is_day(text):
            return date.fromisoformat(text).isoformat()
        return second_as_text(parse_instant(text, "time").second)
    except (BadRequest, ValueError, OverflowError):
        raise BadRequest(
            "time: expected a day such as 2026-01-31, or an RFC 3339 date-time such as"
            " 2026-01-31T18:00:00Z"
        ) from None
