"""Mails as bytes: headers, plain text and a page of HTML."""

import secrets
from collections.abc import Mapping
from datetime import UTC, datetime
from email.headerregistry import Address
from email.message import EmailMessage
from email.policy import SMTP
from typing import Final

from attrs import frozen

from medamad.mail.settings import MailSettings

_NAME: Final = "medamad"
"""The name of the sender."""
_RANDOM_BYTES: Final = 12


@frozen(kw_only=True)
class Letter:
    """What a mail says."""

    subject: str
    text: str
    html: str = ""
    number: str = ""
    """What its Message-ID is made of, "" for a random one."""
    headers: tuple[tuple[str, str], ...] = ()


def make_mail(
    settings: MailSettings,
    to: str,
    subject: str,
    text: str,
    html: str = "",
    *,
    sent_s: int,
    number: str = "",
    headers: Mapping[str, str] | None = None,
) -> bytes:
    """Return a mail with lines that end with CRLF.

    `number` makes its Message-ID, which is random without. `sent_s` is the Unix second of its date.
    """
    mail = EmailMessage(SMTP)
    domain = settings.sender.rpartition("@")[2]
    mail["From"] = Address(_NAME, addr_spec=settings.sender)
    mail["To"] = Address(addr_spec=to)
    mail["Subject"] = subject
    mail["Date"] = datetime.fromtimestamp(sent_s, UTC)
    mail["Message-ID"] = f"<{number or secrets.token_hex(_RANDOM_BYTES)}@{domain}>"
    # RFC 3834: nobody's vacation is told to a program.
    mail["Auto-Submitted"] = "auto-generated"
    for name, value in (headers or {}).items():
        mail[name] = value
    mail.set_content(text)
    if html:
        mail.add_alternative(html, subtype="html")
    return mail.as_bytes()
