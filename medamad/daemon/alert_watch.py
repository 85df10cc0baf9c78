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
from medamad.query.request import Cancellation
from medamad.web.backend import Backend, Trial

ENDS_AFTER_S: Final = 600
"""A cause has ended when it has not been found for so long: what comes and goes is one cause."""
GIVE_UP_S: Final = 24 * 3_600
"""A notice that cannot be delivered for so long is dropped."""
FIRST_RETRY_S: Final = 60
LONGEST_RETRY_S: Final = 4 * 3_600
EARLY_S: Final = 30
"""What is due so soon is sent: the next look, which is once a minute, may be later than that."""
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
    """What is known of a notice that did not arrive where its rule sends it.

    `due` is by the monotonic clock.
    """

    sends_to: tuple[object, ...]
    count: int
    due: float
    reason: str
    may_have_arrived: bool


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
    _failures: dict[str, _Attempt] = field(factory=dict)
    """The last notice that did not arrive, by the id of the rule."""
    _arrived: set[str] = field(factory=set)
    """The notices that arrived, while the store cannot take that."""
    _log = Logger()

    async def look(self) -> None:
        """Look at all rules, except where another collector does.

        And except in a demonstration, whose invented traffic ends.
        """
        if self._backend.settings.demo or not self._backend.is_primary:
            return
        alerts = self._backend.store.alerts
        for number in alerts.all():
            if rules := alerts.of(number).rules:
                await self._look_at_all(number, rules)
        self.send_due()

    def stop(self) -> None:
        """Stop sending. What did not arrive is sent after the next start."""
        for sending in list(self._sending.values()):
            sending.cancel()

    async def _look_at_all(self, number: int, rules: Sequence[Rule]) -> None:
        try:
            found = await self._findings(number, rules)
            for rule in rules:
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
        # What is not there yet would look like silence.
        backend.check_complete()
        looked = Looked(
            now_ms=int(backend.clock() * 1000),
            listening_since_ms=self._listening_since_ms,
            quiet_since=backend.quiet.get(number),
            zone=backend.pipeline.rules.zone,
            definitions=backend.store.goals.of(number),
            keeps_visits=backend.store.settings.visits.is_on,
        )

        ask = partial(look, rules=rules, looked=looked)
        sources = backend.settings.sources
        return await backend.run_query(
            lambda: backend.engine.read(website, sources, Cancellation(), ask), client=_CLIENT
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
                number, lambda old: old.with_findings(rule, began, ended, now=now, ids=ids)
            )

    # Sending

    def send_due(self) -> None:
        """Begin to send the oldest notice of each rule, unless it is to wait for a retry."""
        seconds = self._backend.seconds()
        for number, alerts in self._backend.store.alerts.all().items():
            seen = set[str]()
            for notice in alerts.notices:
                rule = alerts.rule(notice.rule)
                attempt = _to(rule, self._attempts.get(notice.id))
                is_next = rule.id not in seen and rule.id not in self._sending
                seen.add(rule.id)
                if is_next and (attempt is None or attempt.due <= seconds + EARLY_S):
                    if len(self._sending) >= _AT_ONCE:
                        return
                    self._begin(number, rule, notice)

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
        tried = _to(rule, self._attempts.get(notice.id))
        is_late = tried is not None and backend.clock() - notice.time > GIVE_UP_S
        try:
            if not is_late and notice.id not in self._arrived:
                speaker = self._speaker(rule)
                text = speaker.sentence(rule, notice.event, notice.facts, place)
                await self._deliver(number, rule, notice, text)
                self._arrived.add(notice.id)
        except NotDelivered as error:
            was_unsure = tried is not None and tried.may_have_arrived
            # Sent once more, under the same Message-ID, if nobody knows whether it arrived.
            if not (was_unsure and error.may_have_arrived):
                count = 1 + (tried.count if tried else 0)
                wait_s = min(FIRST_RETRY_S << (count - 1), LONGEST_RETRY_S)
                attempt = _Attempt(
                    rule.sends_to,
                    count,
                    backend.seconds() + wait_s,
                    _told(error),
                    was_unsure or error.may_have_arrived,
                )
                self._attempts[notice.id] = self._failures[rule.id] = attempt
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
            raise NotDelivered(
                "the mail was not taken", str(error), may_have_arrived=error.may_have_arrived
            ) from error

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
        if "referrer" in facts:
            page += f"?{urlencode({'referrer[eq]': facts['referrer']})}"
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
        alerts, looked_at = self._backend.store.alerts, None
        # It may be changed meanwhile: what is sent is of the rule as it is then.
        while (rule := alerts.of(website).rule(rule_id)).looks_at != looked_at:
            looked_at = rule.looks_at
            found = (await self._findings(website, [rule]))[rule_id].facts
        text = self._speaker(rule).test(rule, list(found.values()), self._place(website))
        now = int(self._backend.clock())
        notice = Notice(id=new_id(), rule=rule_id, event="test", time=now, facts={})
        try:
            await self._deliver(website, rule, notice, text)
        except NotDelivered as error:
            return Trial(text, bool(found), _told(error))
        return Trial(text, bool(found), "")

    def failure_of(self, rule: Rule) -> str:
        """Return why the last notice of a rule did not arrive where it sends them, "" if it did."""
        attempt = _to(rule, self._failures.get(rule.id))
        return "" if attempt is None else attempt.reason

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


def _to(rule: Rule, attempt: _Attempt | None) -> _Attempt | None:
    """Return an attempt if it was made to send something where a rule sends it now."""
    return attempt if attempt is not None and attempt.sends_to == rule.sends_to else None


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
