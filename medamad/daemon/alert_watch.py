"""Looks at the rules of alerts once a minute, and sends what they find to webhooks or by mail.

What begins or ends is stored together with the notice that is still to be sent, so that a restart
neither loses nor repeats one. A notice is removed once it has been delivered: only if the daemon is
killed in between is it sent again, under the same id.
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from functools import cache, partial
from itertools import islice
from typing import Any, Final, Protocol
from urllib.parse import quote, urlencode

from attrs import define, field, frozen
from twisted.internet.defer import CancelledError, Deferred
from twisted.logger import Logger
from twisted.python.failure import Failure

from medamad.alerts.conditions import UNKNOWN, Findings, Looked, look
from medamad.alerts.payloads import Message, payload_of
from medamad.alerts.texts import Speaker
from medamad.domain.accounts import Settings
from medamad.domain.alerts import (
    MAIL,
    MAX_CAUSES,
    SERVICE,
    Alerts,
    Facts,
    NotDelivered,
    Notice,
    Rule,
)
from medamad.domain.errors import NotFound, Unavailable
from medamad.domain.goals import new_id
from medamad.domain.subscriptions import Subscription
from medamad.domain.websites import Website
from medamad.domain.zones import zone_named
from medamad.ingest.networks import Networks
from medamad.mail.alert_mails import alert_letter
from medamad.mail.settings import MailFailed
from medamad.query.reader import Reader
from medamad.query.request import Cancellation
from medamad.web.backend import Backend, Trial

ENDS_AFTER_S: Final = 600
"""A cause has ended when it has not been found for so long: what comes and goes is one cause."""
GIVE_UP_S: Final = 24 * 3_600
"""A notice that cannot be delivered for so long is dropped."""
FIRST_RETRY_S: Final = 60
LONGEST_RETRY_S: Final = 4 * 3_600
_AT_ONCE: Final = 10
_GIB: Final = 1 << 30
_CLIENT: Final = ("alerts",)
"""Rules take turns with the requests for statistics."""


class Post(Protocol):
    """Sends a request to a webhook, as `Webhooks.post` does."""

    async def __call__(
        self,
        url: str,
        body: bytes,
        headers: Sequence[tuple[str, str]],
        allowed: Networks,
        /,
    ) -> None:
        """Return once the response is a success. Raises NotDelivered."""


def post_by(reactor: Any) -> Post:
    """Return what sends to webhooks. It takes the memory that TLS needs when it is first called."""

    @cache
    def webhooks() -> Any:
        from medamad.web.webhooks import Webhooks  # noqa: PLC0415 - imports OpenSSL

        return Webhooks(reactor)

    async def post(
        url: str, body: bytes, headers: Sequence[tuple[str, str]], allowed: Networks, /
    ) -> None:
        await webhooks().post(url, body, headers, allowed)

    return post


@frozen
class _Attempt:
    """What is known of a notice that did not arrive. `due` is by the monotonic clock."""

    count: int
    due: float


@define(eq=False)
class AlertWatch:
    """Looks at the rules and sends their notices. Used in the reactor's thread."""

    _backend: Backend
    _post: Post
    _secret_of: Callable[[str], str]
    _listening_since_ms: int
    _absent_since: dict[tuple[str, str], float] = field(factory=dict)
    """Since when a cause of a rule has not been found, by the monotonic clock."""
    _attempts: dict[str, _Attempt] = field(factory=dict)
    """By the id of the notice."""
    _sending: dict[str, Deferred[None]] = field(factory=dict)
    """By the id of the rule: its notices arrive in order."""
    _failures: dict[str, str] = field(factory=dict)
    _arrived: set[str] = field(factory=set)
    """The notices that arrived, while the store cannot take that."""
    _unsure: set[str] = field(factory=set)
    """The notices of which nobody knows whether they arrived by mail."""
    _log = Logger()

    async def look(self) -> None:
        """Look at all rules, except in a demonstration, whose invented traffic ends."""
        if self._backend.settings.demo:
            return
        for number, alerts in self._backend.store.alerts.all().items():
            if alerts.rules:
                await self._look_at_all(number, alerts)
        self.send_due()

    def stop(self) -> None:
        """Stop sending. What did not arrive is sent after the next start."""
        for sending in list(self._sending.values()):
            sending.cancel()

    async def _look_at_all(self, number: int, alerts: Alerts) -> None:
        try:
            found = await self._findings(number, alerts.rules)
            for rule in alerts.rules:
                if rule.id in found:
                    await self._note(number, rule, found[rule.id])
        except (Unavailable, NotFound):
            return  # busy, or deleted; the next look will do
        except CancelledError:
            raise
        except Exception:  # noqa: BLE001 - those of other websites are looked at all the same
            self._log.failure("alerts could not be looked at")

    async def _findings(self, number: int, rules: Sequence[Rule]) -> Mapping[str, Findings]:
        backend = self._backend
        if number == SERVICE:
            find = partial(_service_findings, backend)
            return await backend.run_query(
                lambda: {rule.id: find(rule) for rule in rules}, client=_CLIENT
            )
        website = backend.store.websites.by_number(number)
        if website is None:
            raise NotFound("hostname: no such website")
        looked = Looked(
            now_ms=int(backend.clock() * 1000),
            listening_since_ms=self._listening_since_ms,
            quiet_since=backend.quiet.get(number),
            zone=backend.pipeline.rules.zone,
            definitions=backend.store.goals.of(number),
            keeps_visits=backend.store.settings.visits.is_on,
        )

        def findings(reader: Reader) -> Mapping[str, Findings]:
            return backend.store.read(
                website, partial(look, reader=reader, rules=rules, looked=looked)
            )

        sources = backend.settings.sources
        return await backend.run_query(
            lambda: backend.engine.read(website, sources, Cancellation(), findings), client=_CLIENT
        )

    async def _note(self, number: int, rule: Rule, findings: Findings) -> None:
        """Store which causes of a rule have begun or ended, and that this is to be sent."""
        now, seconds = int(self._backend.clock()), self._backend.seconds()
        others = (each for each in findings.facts.items() if rule.cause(each[0]) is None)
        began = dict(islice(others, MAX_CAUSES - len(rule.causes)))
        ended = []
        for cause in rule.causes:
            place = (rule.id, cause.key)
            if cause.key in findings.facts or not findings.are_all:
                self._absent_since.pop(place, None)
            elif seconds - self._absent_since.setdefault(place, seconds) >= ENDS_AFTER_S:
                ended.append(cause.key)
                del self._absent_since[place]
        for key in began:
            self._absent_since.pop((rule.id, key), None)
        if began or ended:
            ids = [new_id() for _ in range(len(began) + len(ended))]
            await self._backend.store.alerts.change(
                number, lambda old: old.with_findings(rule.id, began, ended, now=now, ids=ids)
            )

    # Sending

    def send_due(self) -> None:
        """Begin to send the oldest notice of each rule, unless it is to wait for a retry."""
        seconds = self._backend.seconds()
        for number, alerts in self._backend.store.alerts.all().items():
            seen = set[str]()
            for notice in alerts.notices:
                attempt = self._attempts.get(notice.id)
                is_next = notice.rule not in seen and notice.rule not in self._sending
                seen.add(notice.rule)
                if is_next and (attempt is None or attempt.due <= seconds):
                    if len(self._sending) >= _AT_ONCE:
                        return
                    self._begin(number, alerts.rule(notice.rule), notice)

    def _begin(self, number: int, rule: Rule, notice: Notice) -> None:
        sending = Deferred.fromCoroutine(self._send(number, rule, notice))
        self._sending[rule.id] = sending

        def ended(result: Failure | None) -> None:
            self._sending.pop(rule.id, None)
            if result is None:
                self.send_due()
            elif not result.check(CancelledError, Unavailable, NotFound):
                self._log.failure("a notice of an alert could not be sent", result)

        sending.addBoth(ended)

    async def _send(self, number: int, rule: Rule, notice: Notice) -> None:
        backend = self._backend
        place = self._place(number)
        is_late = backend.clock() - notice.time > GIVE_UP_S
        try:
            if not is_late and notice.id not in self._arrived:
                speaker = self._speaker(rule)
                text = speaker.sentence(rule, notice.event, notice.facts, place)
                await self._deliver(number, rule, notice, text)
                self._arrived.add(notice.id)
        except NotDelivered as error:
            count = 1 + (attempt.count if (attempt := self._attempts.get(notice.id)) else 0)
            wait_s = min(FIRST_RETRY_S << (count - 1), LONGEST_RETRY_S)
            self._attempts[notice.id] = _Attempt(count, backend.seconds() + wait_s)
            self._failures[rule.id] = _told(error)
            self._log.warn(
                "an alert ({kind}) of {place} did not arrive: {reason}; retrying in {wait_s} s",
                kind=rule.kind,
                place=place or "the service",
                reason=str(error),
                wait_s=wait_s,
            )
            return
        if is_late:
            self._log.error(
                "an alert ({kind}) of {place} did not arrive for a day, and is dropped",
                kind=rule.kind,
                place=place or "the service",
            )
        else:
            self._failures.pop(rule.id, None)
        self._attempts.pop(notice.id, None)
        await backend.store.alerts.change(number, lambda old: old.without_notice(notice.id))
        self._arrived.discard(notice.id)
        self._unsure.discard(notice.id)

    async def _deliver(self, number: int, rule: Rule, notice: Notice, text: str) -> None:
        backend = self._backend
        website = self._website(number)
        if rule.format == MAIL:
            await self._mail(rule, notice, text, self._link(website, notice.facts))
            return
        message = Message(
            id=notice.id,
            event=notice.event,
            time=notice.time,
            website=None if website is None else website.hostname,
            rule=rule,
            facts=notice.facts,
            text=text,
            link=self._link(website, notice.facts),
        )
        try:
            secret = self.secret_of(rule.url).encode()
        except Unavailable as error:
            raise NotDelivered(str(error)) from error
        payload = payload_of(message, secret, int(backend.clock()))
        allowed = backend.settings.webhook_networks
        await self._post(rule.url, payload.body, payload.headers, allowed)

    async def _mail(self, rule: Rule, notice: Notice, text: str, link: str) -> None:
        report = self._report(rule)
        if report is None or report.confirmed is None:
            missing = "is gone" if report is None else "has not been confirmed by its address"
            raise NotDelivered(f"the report {rule.report} {missing}")
        mailer = self._backend.mailer
        url = mailer.settings.url
        letter = alert_letter(report, text, link, url=url, number=notice.id)
        try:
            await mailer.send_letter(report.address, letter)
        except MailFailed as error:
            # Sent once more, under the same Message-ID, if nobody knows whether it arrived.
            if error.may_have_arrived and notice.id in self._unsure:
                return
            if error.may_have_arrived:
                self._unsure.add(notice.id)
            raise NotDelivered("the mail was not taken", str(error)) from error

    def _report(self, rule: Rule) -> Subscription | None:
        """Return the mailed report whose address gets the mails of a rule, None for none."""
        reports = (each for _, each in self._backend.store.reports.all())
        return next((each for each in reports if each.id == rule.report), None)

    def _link(self, website: Website | None, facts: Facts) -> str:
        """Return the address of the page that shows what a rule found, "" if it is unknown."""
        settings = self._backend.settings
        if not settings.public_url:
            return ""
        page = "settings/usage" if website is None else f"websites/{quote(website.hostname)}"
        if isinstance(hour := facts.get("hour"), int):
            zone = self._backend.pipeline.rules.zone
            day = datetime.fromtimestamp(hour, zone).date()
            page += f"?{urlencode({'from': day, 'to': day, 'zone': zone})}"
        return f"{settings.public_url}{settings.base_path}/dashboard/{page}"

    def _speaker(self, rule: Rule) -> Speaker:
        """Return what speaks the language of the account, or that of the mails to an address."""
        report = self._report(rule) if rule.format == MAIL else None
        if report is not None:
            return Speaker(report.language, zone_named(report.timezone))
        account = self._backend.store.account.read()
        settings = Settings() if account is None else account.settings
        return Speaker(settings.language, self._backend.pipeline.rules.zone)

    # For the interface

    async def try_now(self, website: int, rule_id: str) -> Trial:
        """Look at a rule now and send what it finds, as a test. Raises NotFound, Unavailable."""
        rule = self._backend.store.alerts.of(website).rule(rule_id)
        found = (await self._findings(website, [rule]))[rule_id].facts
        text = self._speaker(rule).test(rule, list(found.values()), self._place(website))
        now = int(self._backend.clock())
        notice = Notice(id=new_id(), rule=rule_id, event="test", time=now, facts={})
        try:
            await self._deliver(website, rule, notice, text)
        except NotDelivered as error:
            return Trial(text, bool(found), _told(error))
        return Trial(text, bool(found), "")

    def failure_of(self, rule_id: str) -> str:
        """Return why the last notice of a rule did not arrive, "" if it did or there is none."""
        return self._failures.get(rule_id, "")

    def secret_of(self, url: str) -> str:
        """Return the secret that signs what is sent to a webhook. Raises Unavailable."""
        return self._secret_of(url)

    def _website(self, number: int) -> Website | None:
        """Return a website, None for the service. Raises NotFound."""
        website = self._backend.store.websites.by_number(number)
        if website is None and number != SERVICE:
            raise NotFound("hostname: no such website")
        return website

    def _place(self, number: int) -> str:
        website = self._website(number)
        return "" if website is None else website.hostname


def _told(error: NotDelivered) -> str:
    return f"{error}: {error.response}" if error.response else str(error)


def _service_findings(backend: Backend, rule: Rule) -> Findings:
    """Return what a rule of the service finds. Any thread."""
    return _SERVICE[rule.kind](backend, rule)


def _disk(backend: Backend, rule: Rule) -> Findings:
    try:
        free_gib = backend.store.free_space.free_disk() // _GIB
    except OSError:
        return UNKNOWN
    return _single({"free": free_gib} if free_gib < (rule.threshold or 0) else None)


def _backup(backend: Backend, _rule: Rule) -> Findings:
    reason = backend.backups.failure
    return _single({"reason": reason} if reason else None)


def _limits(backend: Backend, _rule: Rule) -> Findings:
    store = backend.store
    reached = store.limits_reached(int(backend.clock() * 1000))
    return Findings(
        {
            f"{website.number} {dimension.attribute}": {
                "limited": website.hostname,
                "dimension": dimension.attribute,
            }
            for website in store.websites.all()
            for dimension in reached.get(website.number, ())
        }
    )


def _damage(backend: Backend, _rule: Rule) -> Findings:
    places = backend.store.damaged_places()
    return _single({"place": places[0]} if places else None)


def _import(backend: Backend, rule: Rule) -> Findings:
    """Find the websites whose last import failed.

    What was reported before the last start goes on until an import is complete.
    """
    failures, websites = backend.import_failures, backend.store.websites
    facts: dict[str, Facts] = {
        str(number): {"imported": website.hostname, "reason": reason}
        for number, reason in list(failures.items())
        if reason and (website := websites.by_number(number))
    }
    for cause in rule.causes:
        if int(cause.key) not in failures and websites.by_number(int(cause.key)):
            facts[cause.key] = cause.facts
    return Findings(facts)


def _single(facts: Facts | None) -> Findings:
    return Findings({} if facts is None else {"": facts})


_SERVICE: Final[Mapping[str, Callable[[Backend, Rule], Findings]]] = {
    "disk": _disk,
    "backup": _backup,
    "limits": _limits,
    "damage": _damage,
    "import": _import,
}
