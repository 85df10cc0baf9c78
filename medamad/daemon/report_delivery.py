"""Mails reports when they are due: each once, as far as the mail server's responses tell.

That a report is about to be sent is on disk before, and that it was accepted is after. If the
response to it was lost, or the daemon was killed meanwhile, nobody knows whether it arrived: it is
sent once more under the same Message-ID, by which mail programs tell that it is the same. If that
response is lost too, the report counts as sent.
"""

from collections.abc import Hashable
from functools import partial
from typing import Final

from attrs import define, evolve, field, frozen
from twisted.internet.defer import CancelledError
from twisted.logger import Logger

from medamad.domain.errors import Unavailable
from medamad.domain.subscriptions import Subscription
from medamad.mail.figures import Counted, website_figures
from medamad.mail.message import Letter
from medamad.mail.settings import MailFailed
from medamad.mail.spans import Span, due_span
from medamad.mail.subscription_mails import report_letter
from medamad.query.request import Cancellation
from medamad.web.backend import Backend

MOST_TRIES: Final = 2
"""How often a report is sent at most if nobody knows whether it arrived."""
_FIRST_PAUSE_S: Final = 60.0
_LONGEST_PAUSE_S: Final = 3_600.0
_CLIENT: Final[tuple[Hashable, ...]] = ("mailed reports",)
"""In the query pool, reports take turns with people as one of them."""


@frozen
class _Pause:
    """Until when nothing is tried after a failure, on the monotonic clock, and how long it is."""

    until: float
    length_s: float


@define(eq=False)
class ReportDelivery:
    """Mails the reports that are due, one after the other."""

    _backend: Backend
    _pauses: dict[str, _Pause] = field(factory=dict)
    """By the ids of subscriptions."""
    _log = Logger()

    async def look(self) -> None:
        """Mail what is due, except in a demonstration, and where another collector does.

        To be called regularly.
        """
        backend = self._backend
        if backend.settings.demo or not backend.is_primary:
            return
        for key, _ in backend.store.reports.all():
            subscription, now_s = backend.store.reports.find(key), int(backend.clock())
            if subscription is None:
                continue  # it has been ended meanwhile
            try:
                span = due_span(subscription, now_s)
                if (subscription.since or 0) > now_s:
                    # The clock was ahead then.
                    await backend.store.reports.change(key, partial(evolve, changed=now_s))
                if span is None or self._is_paused(subscription):
                    continue
                goes_on = await self._mail(key, subscription, span)
            except Unavailable:
                return
            except CancelledError:
                raise
            except Exception:  # noqa: BLE001 - the others are mailed all the same
                self._log.failure("the report {id} could not be made", id=subscription.id)
                self._pause(subscription)
                continue
            if not goes_on:
                return

    async def _mail(self, key: bytes, subscription: Subscription, span: Span) -> bool:
        """Try to mail a report; return whether the next one may be tried at once."""
        backend, name = self._backend, span.name
        reports = backend.store.reports
        if subscription.tries_of(name) >= MOST_TRIES:
            await reports.change(key, lambda old: old.with_done(name))
            return True
        # What is not there yet would be missing.
        backend.check_complete()
        letter = await backend.run_query(partial(self._letter, subscription, span), client=_CLIENT)
        try:
            backend.mailer.settings.check()
        except MailFailed as error:
            self._failed(subscription, error)
            return False
        tried = subscription.with_try(name)
        await reports.change(key, lambda old: tried if old == subscription else old)
        if reports.find(key) != tried:
            return True  # it has been changed or ended meanwhile
        try:
            await backend.mailer.send_letter(subscription.address, letter)
        except MailFailed as error:
            if error.is_final:
                await reports.change(key, lambda old: old.with_done(name))
            elif not error.may_have_arrived:
                await reports.change(key, Subscription.without_try)
            self._failed(subscription, error)
            return error.is_refusal
        await reports.change(key, lambda old: old.with_done(name))
        self._pauses.pop(subscription.id, None)
        backend.report_failures.pop(subscription.id, None)
        self._log.info("the report {id} was mailed", id=subscription.id)
        return True

    def _letter(self, subscription: Subscription, span: Span) -> Letter:
        """Make a mail. Runs in the query pool."""
        backend, now_s = self._backend, int(self._backend.clock())
        store, sources = backend.store, backend.settings.sources
        counted = Counted(store.settings.visits.is_on, backend.pipeline.rules.has_visitors)
        websites = filter(None, map(store.websites.by_number, subscription.websites))
        figures = [
            backend.engine.read(
                website,
                sources,
                Cancellation(),
                lambda reader, website=website: website_figures(  # type: ignore[misc]
                    reader,
                    website.hostname,
                    span,
                    goals=store.goals.of(website.number).goals,
                    annotations=store.annotations.of(website.number),
                    counted=counted,
                    now_ms=now_s * 1000,
                ),
            )
            for website in websites
        ]
        return report_letter(subscription, span, figures, backend.mailer.settings.url, now_s)

    def _is_paused(self, subscription: Subscription) -> bool:
        pause = self._pauses.get(subscription.id)
        return pause is not None and self._backend.seconds() < pause.until

    def _failed(self, subscription: Subscription, error: MailFailed) -> None:
        """Keep the reason for the owner; the log lacks it, since it may name the address."""
        self._pause(subscription)
        self._backend.report_failures[subscription.id] = str(error)
        self._log.warn(
            "the report {id} could not be mailed; the list of reports says why", id=subscription.id
        )

    def _pause(self, subscription: Subscription) -> None:
        before = self._pauses.get(subscription.id)
        length_s = min(2 * before.length_s, _LONGEST_PAUSE_S) if before else _FIRST_PAUSE_S
        self._pauses[subscription.id] = _Pause(self._backend.seconds() + length_s, length_s)
