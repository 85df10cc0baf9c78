"""The mails of a subscription: the question whether an address wants it, and its reports."""

from collections.abc import Sequence
from typing import Final

from medamad.domain.subscriptions import Subscription
from medamad.domain.zones import zone_named
from medamad.mail.figures import WebsiteFigures
from medamad.mail.message import Letter
from medamad.mail.report import Report, as_html, as_text
from medamad.mail.spans import Span
from medamad.mail.words import Words

LATE_S: Final = 3_600
"""A report that is later than this says so."""


def page_address(url: str, subscription: Subscription, what: str) -> str:
    """Return the address of the page to `confirm` or `unsubscribe`; "" without a URL."""
    return url and f"{url}/mail/{subscription.secret}/{what}"


def confirmation(subscription: Subscription, hostnames: Sequence[str], url: str) -> Letter:
    """Return the only mail to an address before it is confirmed."""
    texts, websites = Words.of(subscription.language).texts, ", ".join(hostnames)
    return Letter(
        subject=texts.confirm_subject.format(websites=websites),
        text=(
            f"{texts.confirm_text.format(websites=websites)}\n\n"
            f"{page_address(url, subscription, 'confirm')}\n"
        ),
    )


def report_letter(
    subscription: Subscription,
    span: Span,
    websites: Sequence[WebsiteFigures],
    url: str,
    now_s: int,
) -> Letter:
    """Return the mail with a report; the same one has the same Message-ID."""
    words, due_s = Words.of(subscription.language), span.due_s(subscription.day, subscription.hour)
    unsubscribe = page_address(url, subscription, "unsubscribe")
    notes = []
    if now_s - due_s > LATE_S:
        when = words.moment(due_s, zone_named(subscription.timezone))
        notes.append(words.texts.late.format(when=when))
    report = Report(
        span=span, websites=websites, words=words, url=url, notes=notes, unsubscribe=unsubscribe
    )
    headers = (
        ("List-Unsubscribe", f"<{unsubscribe}>"),
        # RFC 8058: a mail program may unsubscribe without opening the page.
        ("List-Unsubscribe-Post", "List-Unsubscribe=One-Click"),
    )
    return Letter(
        subject=report.subject,
        text=as_text(report),
        html=as_html(report),
        number=f"report.{subscription.id}.{span.name}",
        headers=headers if unsubscribe else (),
    )
