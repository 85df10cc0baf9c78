"""Sends mails with the settings in use."""

from collections.abc import Awaitable, Callable, Mapping
from types import ModuleType
from typing import Any, Protocol, TypeVar

from attrs import define

from medamad.mail.message import Letter, make_mail
from medamad.mail.settings import USUAL_PATIENCE, MailSettings, Patience, checked_address
from medamad.mail.texts import TEXTS

T = TypeVar("T")


class InThread(Protocol):
    """Runs a call in another thread."""

    def __call__(self, call: Callable[[], T], /) -> Awaitable[T]:
        """Return the result of `call`."""


@define(eq=False)
class Mailer:
    """Sends mails. A reload replaces `settings`; `clock` returns Unix seconds."""

    settings: MailSettings
    _reactor: Any
    _clock: Callable[[], float]
    _in_thread: InThread
    _patience: Patience = USUAL_PATIENCE

    async def send(
        self,
        to: str,
        subject: str,
        text: str,
        html: str = "",
        *,
        number: str = "",
        headers: Mapping[str, str] | None = None,
    ) -> None:
        """Send a mail, as `make_mail` makes it. Raises MailFailed."""
        settings = self.settings
        settings.check()
        content = make_mail(
            settings,
            to,
            subject,
            text,
            html,
            sent_s=int(self._clock()),
            number=number,
            headers=headers,
        )
        smtp = await self._in_thread(_load)
        await smtp.send_mail(content, to, settings, self._reactor, self._patience)

    async def send_letter(self, to: str, letter: Letter) -> None:
        """Send a mail of a subscription. Raises MailFailed."""
        await self.send(
            to,
            letter.subject,
            letter.text,
            letter.html,
            number=letter.number,
            headers=dict(letter.headers),
        )

    async def send_test(self, to: str, language: str) -> None:
        """Send a mail that says that mails arrive. Raises BadRequest, MailFailed."""
        texts = TEXTS[language]
        await self.send(checked_address(to), texts.test_subject, texts.test + "\n")


def _load() -> ModuleType:
    """Import the client in a thread: its library looks up the name of this machine."""
    from medamad.mail import smtp  # noqa: PLC0415 - as the docstring says

    return smtp
