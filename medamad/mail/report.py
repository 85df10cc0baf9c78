"""A report as a page of HTML and as plain text.

Mail programs know tables and inline styles, no script and few style sheets: the chart is a table
whose cells have heights, and dark colours are the only thing that needs the style sheet.
"""

import unicodedata
from collections.abc import Iterator, Sequence
from html import escape
from typing import Final
from urllib.parse import quote, urlencode

from attrs import frozen

from medamad.domain.subscriptions import Every
from medamad.mail.figures import Figure, WebsiteFigures
from medamad.mail.spans import Span
from medamad.mail.words import Words, plain, printable

_BAR_PX: Final = 96
"""The height of the chart's highest bar."""
_BAR_CHARACTERS: Final = 24
_PER_ROW: Final = 3
"""How many figures are beside each other."""
_ANNOTATIONS: Final = 20
"""How many annotations are shown, the latest ones."""
_NAME_WIDTH: Final = 40
"""The least width of the column of names in plain text, which a mail of 72 columns has room for."""
_STYLES: Final = {
    "paper": "background-color:#f7f6f2;color:#1d2430",
    "card": "background-color:#ffffff;color:#1d2430;border:1px solid #e2e0d8",
    "soft": "color:#56606d",
    "line": "border-top:1px solid #e2e0d8",
    "link": "color:#0f6b5c",
    "bar": "background-color:#0f6b5c",
}
"""The colours of the dashboard, by the class that has the dark ones."""
_DARK: Final = """
:root { color-scheme: light dark; supported-color-schemes: light dark }
@media (prefers-color-scheme: dark) {
  .paper { background-color: #12161c !important; color: #e8ebef !important }
  .card { background-color: #1a2029 !important; color: #e8ebef !important }
  .card { border-color: #2b333f !important }
  .soft { color: #a3adba !important }
  .line { border-color: #2b333f !important }
  .link { color: #5fc9b3 !important }
  .bar { background-color: #5fc9b3 !important }
}
"""
_FONT: Final = "font-family:system-ui,'Segoe UI',Roboto,'Noto Sans',sans-serif"


@frozen(kw_only=True)
class Report:
    """The figures of one or several websites in a week or month, in one language.

    `url` is the address of the service, "" if it is unknown. `notes` are further sentences at the
    beginning.
    """

    span: Span
    websites: Sequence[WebsiteFigures]
    words: Words
    url: str
    notes: Sequence[str] = ()
    unsubscribe: str = ""
    """The address of the page that ends it, "" for a report that is not mailed."""

    @property
    def subject(self) -> str:
        """The subject of a mail."""
        names = ", ".join(website.hostname for website in self.websites)
        form = self.words.texts.subject[self.span.every]
        return form.format(websites=names, span=self.words.span(self.span))

    def address_of(self, hostname: str) -> str:
        """Return the address of the page that shows the same days, "" if it is unknown."""
        shown = {"from": self.span.first, "to": self.span.last, "zone": self.span.zone}
        path = f"/dashboard/websites/{quote(hostname)}?{urlencode(shown)}"
        return self.url and self.url + path

    def closing(self) -> Iterator[str]:
        """Return the sentences at the end."""
        texts = self.words.texts
        if any(website.is_incomplete for website in self.websites):
            yield texts.incomplete
        if any(website.lacks_exclusions for website in self.websites):
            yield texts.not_left_out
        yield texts.times.format(zone=self.span.zone)
        if not self.url:
            yield texts.no_url
        if self.unsubscribe:
            yield texts.ended

    def figure_rows(self, website: WebsiteFigures) -> Iterator[tuple[str, str, str]]:
        """Return the name, the value and the comparison of each figure."""
        for figure in website.figures:
            value = self.words.figure(figure.measure, figure.now)
            before = self.words.figure(figure.measure, figure.before)
            called = self.words.texts.measures[figure.measure]
            yield called, value, self._compared(before, figure)

    def goal_rows(self, website: WebsiteFigures) -> Iterator[tuple[str, str, str]]:
        """Return the name, the value and the comparison of each goal and its revenue."""
        words = self.words
        for goal in website.goals:
            name = printable(goal.name)
            figure = Figure("conversions", goal.now, goal.before)
            yield name, words.number(goal.now), self._compared(words.number(goal.before), figure)
            if goal.revenue is not None and goal.currency is not None:
                now, before = (
                    words.money(amount or goal.revenue * 0, goal.currency)
                    for amount in (goal.revenue, goal.revenue_before)
                )
                called = words.texts.part.format(name=name, dimension=words.texts.revenue)
                yield called, now, words.texts.before.format(value=before)

    def _compared(self, before: str, figure: Figure) -> str:
        change = self.words.change(figure)
        compared = self.words.texts.before.format(value=before)
        return f"{compared} ({change})" if change else compared

    def sentences(self, website: WebsiteFigures) -> list[str]:
        """Return what changed; nothing where that is unknown."""
        if website.changes is None:
            return []
        found = self.words.sentences(website.measure, self.span.every, website.changes)
        return list(found)

    def list_rows(self, website: WebsiteFigures, name: str) -> Iterator[tuple[str, str]]:
        """Return the names and figures of a list."""
        for each, count in website.lists[name]:
            yield self.words.name(name, each), self.words.number(count)

    def annotation_rows(self, website: WebsiteFigures) -> Iterator[tuple[str, str, str]]:
        """Return the time, the text and the link of each annotation, "" without a link."""
        for each in website.annotations[-_ANNOTATIONS:]:
            yield self.words.time_of(each, self.span.zone), plain(each.text), each.link or ""

    def annotations_left_out(self, website: WebsiteFigures) -> str:
        """Return the sentence on annotations that are not shown, "" if all are."""
        count = len(website.annotations) - _ANNOTATIONS
        form = self.words.texts.earlier_annotations
        return form.format(n=self.words.number(count)) if count > 0 else ""

    def measure_of(self, website: WebsiteFigures, form: str) -> str:
        """Return a text with the name of the measure that rows and days are counted by."""
        return form.format(measure=self.words.texts.measures[website.measure])


def as_html(report: Report) -> str:
    """Return a report as a page of HTML that needs nothing else."""
    texts = report.words.texts
    notes = "".join(_paragraph(note) for note in report.notes)
    parts = "".join(_website(report, website) for website in report.websites)
    closing = "".join(_paragraph(note, "soft", 13) for note in report.closing())
    if report.unsubscribe:
        closing += _link(report.unsubscribe, texts.unsubscribe, "margin:0;font-size:13px")
    return (
        f'<!DOCTYPE html>\n<html lang="{texts.locale}"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width">'
        '<meta name="color-scheme" content="light dark">'
        '<meta name="supported-color-schemes" content="light dark">'
        f"<title>{escape(report.subject)}</title><style>{_DARK}</style></head>"
        f"<body {_styled('paper', f'margin:0;padding:0;{_FONT}')}>"
        f'<table role="presentation" width="100%" cellpadding="0" cellspacing="0"'
        f" {_styled('paper')}>"
        '<tr><td align="center" style="padding:16px 8px">'
        '<table role="presentation" width="100%" cellpadding="0" cellspacing="0"'
        ' style="max-width:640px"><tr><td style="text-align:left;font-size:15px;line-height:1.5">'
        f"{notes}{parts}{closing}</td></tr></table></td></tr></table></body></html>\n"
    )


def _styled(name: str, more: str = "") -> str:
    style = ";".join(filter(None, (_STYLES[name], more)))
    return f'class="{name}" style="{style}"'


def _paragraph(text: str, name: str = "", size: int = 15) -> str:
    style = f"margin:0 0 8px;font-size:{size}px"
    return f"<p {_styled(name, style) if name else f'style={style!r}'}>{escape(text)}</p>"


def _link(address: str, text: str, style: str) -> str:
    link = f'<a href="{escape(address)}" {_styled("link")}>{escape(text)}</a>'
    return f'<p style="{style}">{link}</p>'


def _heading(text: str, note: str = "") -> str:
    beside = f" <span {_styled('soft', 'font-weight:400')}>{escape(note)}</span>" if note else ""
    style = "margin:20px 0 6px;font-size:15px;line-height:1.4"
    return f'<h2 style="{style}">{escape(text)}{beside}</h2>'


def _website(report: Report, website: WebsiteFigures) -> str:
    texts = report.words.texts
    head = (
        '<table role="presentation" width="100%" cellpadding="0" cellspacing="0"'
        f" {_styled('card', 'margin:0 0 16px;border-radius:12px')}><tr>"
        '<td style="padding:16px 16px 20px">'
        f'<h1 style="margin:0;font-size:20px;line-height:1.3;word-break:break-word">'
        f"{escape(website.hostname)}</h1>"
        f"<p {_styled('soft', 'margin:0 0 12px')}>{escape(report.words.span(report.span))}</p>"
    )
    parts = [head]
    if website.is_empty:
        parts.append(_paragraph(texts.nothing))
    else:
        parts.extend(_content(report, website))
    if address := report.address_of(website.hostname):
        parts.append(_link(address, texts.open, "margin:20px 0 0"))
    return "".join((*parts, "</td></tr></table>"))


def _content(report: Report, website: WebsiteFigures) -> Iterator[str]:
    texts = report.words.texts
    yield _tiles(list(report.figure_rows(website)))
    if sentences := report.sentences(website):
        yield _heading(texts.what_changed)
        yield from map(_paragraph, sentences)
    yield _heading(report.measure_of(website, texts.by_day))
    yield _chart(report, website)
    if website.annotations:
        yield _heading(texts.annotations)
        yield "".join(map(_annotation, report.annotation_rows(website)))
        if left_out := report.annotations_left_out(website):
            yield _paragraph(left_out, "soft", 13)
    for name, called in texts.lists.items():
        if rows := list(report.list_rows(website, name)):
            yield _heading(called, report.measure_of(website, texts.share))
            yield _rows([(*row, "") for row in rows])
    if website.goals:
        yield _heading(texts.goals, texts.measures["conversions"])
        yield _rows(list(report.goal_rows(website)))


def _tiles(figures: Sequence[tuple[str, str, str]]) -> str:
    cells = [
        '<td width="33%" valign="top" style="padding:6px 8px 6px 0">'
        f"<div {_styled('soft', 'font-size:13px;line-height:1.3')}>{escape(called)}</div>"
        '<div style="font-size:20px;line-height:1.4;font-weight:600;white-space:nowrap">'
        f"{escape(value)}</div>"
        f"<div {_styled('soft', 'font-size:13px;line-height:1.3')}>{escape(compared)}</div></td>"
        for called, value, compared in figures
    ]
    rows = [cells[begin : begin + _PER_ROW] for begin in range(0, len(cells), _PER_ROW)]
    lines = "".join(f"<tr>{''.join(row)}</tr>" for row in rows)
    return (
        f'<table role="presentation" width="100%" cellpadding="0" cellspacing="0">{lines}</table>'
    )


def _rows(rows: Sequence[tuple[str, str, str]]) -> str:
    lines = "".join(
        f"<tr><td {_styled('line', 'padding:5px 12px 5px 0;word-break:break-word')}>"
        f'<span dir="auto">{escape(name)}</span></td>'
        f'<td align="right" valign="top" {_styled("line", "padding:5px 0")}>{escape(value)}'
        + (f" <span {_styled('soft', 'font-size:13px')}>{escape(note)}</span>" if note else "")
        + "</td></tr>"
        for name, value, note in rows
    )
    return f'<table width="100%" cellpadding="0" cellspacing="0">{lines}</table>'


def _annotation(row: tuple[str, str, str]) -> str:
    time, text, link = row
    said = f'<span dir="auto">{escape(text)}</span>'
    if link:
        said = f'<a href="{escape(link)}" {_styled("link")}>{said}</a>'
    return (
        '<p style="margin:0 0 4px;word-break:break-word">'
        f"<span {_styled('soft')}>{escape(time)}</span> {said}</p>"
    )


def _day_counts(report: Report, website: WebsiteFigures) -> list[tuple[str, int]]:
    return [(report.words.day(day), count) for day, count in website.by_day]


def _most(website: WebsiteFigures) -> int:
    return max((count for _, count in website.by_day), default=0) or 1


def _chart(report: Report, website: WebsiteFigures) -> str:
    """Return a chart of columns, which a program that reads aloud takes for one picture."""
    most = _most(website)
    is_week = report.span.every is Every.WEEK
    gap = 6 if is_week else 1
    said = ", ".join(
        f"{day}: {report.words.number(count)}" for day, count in _day_counts(report, website)
    )
    bars, labels = [], []
    for day, count in website.by_day:
        height = max(round(_BAR_PX * count / most), 1)
        above = report.words.number(count) if is_week else ""
        bars.append(
            f'<td valign="bottom" align="center" style="padding:0 {gap}px">'
            f"<div {_styled('soft', 'font-size:12px;line-height:1.5')}>{above}</div>"
            f"<div {_styled('bar', f'height:{height}px;line-height:{height}px;font-size:0')}>"
            "&nbsp;</div></td>"
        )
        label = report.words.weekday(day) if is_week else _month_label(day.day)
        labels.append(
            f'<td align="center" {_styled("soft", "padding:4px 0 0;font-size:12px")}>{label}</td>'
        )
    return (
        f'<table role="img" aria-label="{escape(said)}" width="100%" cellpadding="0"'
        f' cellspacing="0" style="table-layout:fixed"><tr>{"".join(bars)}</tr>'
        f"<tr>{''.join(labels)}</tr></table>"
    )


def _month_label(day: int) -> str:
    return str(day) if day in (1, 8, 15, 22, 29) else ""


def as_text(report: Report) -> str:
    """Return a report as plain text."""
    lines = [report.subject, ""]
    for note in report.notes:
        lines += [note, ""]
    for website in report.websites:
        lines += _text_of_website(report, website)
    lines += report.closing()
    if report.unsubscribe:
        lines += ["", f"{report.words.texts.unsubscribe}:", report.unsubscribe]
    return "\n".join(lines) + "\n"


def _text_of_website(report: Report, website: WebsiteFigures) -> Iterator[str]:
    texts = report.words.texts
    yield website.hostname
    yield "=" * len(website.hostname)
    yield ""
    if website.is_empty:
        yield texts.nothing
    else:
        yield from _aligned(list(report.figure_rows(website)))
        if sentences := report.sentences(website):
            yield from ("", texts.what_changed)
            yield from (f"  {sentence}" for sentence in sentences)
        yield from ("", report.measure_of(website, texts.by_day))
        most = _most(website)
        yield from _aligned(
            [
                (day, report.words.number(count), "█" * round(_BAR_CHARACTERS * count / most))
                for day, count in _day_counts(report, website)
            ],
            0,
        )
        if website.annotations:
            yield from ("", texts.annotations)
            for row in report.annotation_rows(website):
                yield f"  {'  '.join(filter(None, row))}"
            if left_out := report.annotations_left_out(website):
                yield f"  {left_out}"
        for name, called in texts.lists.items():
            if rows := list(report.list_rows(website, name)):
                yield from ("", f"{called} ({report.measure_of(website, texts.share)})")
                yield from _aligned([(*row, "") for row in rows])
        if website.goals:
            yield from ("", f"{texts.goals} ({texts.measures['conversions']})")
            yield from _aligned(list(report.goal_rows(website)))
    if address := report.address_of(website.hostname):
        yield from ("", f"{texts.open}:", address)
    yield ""


def _aligned(rows: Sequence[tuple[str, str, str]], least: int = _NAME_WIDTH) -> Iterator[str]:
    """Return rows in columns: a name, a value that ends where the others do, a note."""
    name_width = max(least, *(_width(name) for name, _, _ in rows))
    value_width = max(_width(value) for _, value, _ in rows)
    for name, value, note in rows:
        filled = name + " " * (name_width - _width(name))
        padding = " " * (value_width - _width(value))
        yield f"  {filled}  {padding}{value}  {note}".rstrip()


def _width(text: str) -> int:
    """Return how many columns a text has in a font of fixed width."""
    return sum(2 if unicodedata.east_asian_width(each) in "WF" else 1 for each in text)
