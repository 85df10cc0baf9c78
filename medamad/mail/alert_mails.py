"""The mails of alerts, to an address that has confirmed that it wants a report."""

from typing import Final

from medamad.domain.subscriptions import Subscription
from medamad.mail.message import Letter
from medamad.mail.subscription_mails import page_address
from medamad.mail.words import Words

_SUBJECT: Final = 200
"""Characters of it."""


def alert_letter(
    subscription: Subscription, text: str, link: str, *, url: str, number: str
) -> Letter:
    """Return the mail with what an alert says; the same one has the same Message-ID."""
    unsubscribe = page_address(url, subscription, "unsubscribe")
    label = Words.of(subscription.language).texts.unsubscribe
    ending = f"{label}: {unsubscribe}" if unsubscribe else ""
    return Letter(
        subject=" ".join(text.split())[:_SUBJECT],
        text="\n\n".join(filter(None, (text, link, ending))) + "\n",
        number=f"alert.{number}",
        headers=(
            ("List-Unsubscribe", f"<{unsubscribe}>"),
            ("List-Unsubscribe-Post", "List-Unsubscribe=One-Click"),
        )
        if unsubscribe
        else (),
    )
