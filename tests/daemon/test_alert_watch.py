"""Alerts from what is stored to what is sent, in a real store."""

from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any

import pytest
import pytest_twisted
from attrs import define, evolve
from support.storage.hits import a_view
from support.storage.log_lines import logged_warnings
from support.web.daemon_in_memory import NOW, KeptMails, Server, build_server, sent
from twisted.internet.defer import Deferred, fail, succeed

from medamad.daemon.alert_watch import ENDS_AFTER_S, GIVE_UP_S, AlertWatch
from medamad.daemon.silence import Watch
from medamad.domain.alerts import SERVICE, Alerts, Facts, NotDelivered, Rule
from medamad.domain.cluster import ClusterState
from medamad.domain.dimensions import Dimension
from medamad.domain.errors import NotFound, Unavailable
from medamad.domain.subscriptions import Every, Subscription
from medamad.domain.websites import Website
from medamad.mail.settings import MailFailed
from medamad.storage.website_values import WebsiteValues
from medamad.web.backend import Trial

HOUR = 3_600
URL = "https://hooks.example.com/T0P"
QUIET = Rule(id="rule", kind="quiet", url=URL)
DISK = Rule(id="disk", kind="disk", threshold=1_000_000, url=URL, format="ntfy")


@define
class Refusing:
    """The alerts of a store that takes one change more."""

    _stored: WebsiteValues[Alerts]
    _is_full: bool = False

    def of(self, website: int) -> Alerts:
        return self._stored.of(website)

    def all(self) -> dict[int, Alerts]:
        return self._stored.all()

    async def change(self, website: int, change: Callable[[Alerts], Alerts]) -> Alerts:
        if self._is_full:
            raise Unavailable("the disk is full", retry_after=1)
        self._is_full = True
        return await self._stored.change(website, change)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    built = pytest_twisted.blockon(Deferred.fromCoroutine(build_server(tmp_path)))
    yield built
    pytest_twisted.blockon(Deferred.fromCoroutine(built.store.close()))


def watch_of(server: Server) -> AlertWatch:
    assert isinstance(server.site.backend.alerts, AlertWatch)
    return server.site.backend.alerts


async def look(server: Server, after_s: float = 0) -> None:
    """Look as the daemon does, some time later."""
    server.now += after_s
    server.reactor.advance(after_s)
    await Watch(server.site.backend, 0).look()
    await watch_of(server).look()
    await sent(server)


async def rule_for(server: Server, number: int, *rules: Rule) -> None:
    await server.store.alerts.change(number, lambda _: Alerts(rules))


def rule_of(server: Server) -> Rule:
    return server.store.alerts.of(SERVICE).rule("rule")


async def visited(server: Server, hostname: str = "example.com") -> Website:
    """Register a website that has had 8 views an hour for 8 days, up to now."""
    website = await server.store.add_website(hostname, NOW)
    times = range(NOW - 8 * 24 * HOUR, NOW + 1, HOUR // 8)
    await server.store.append(
        [
            a_view(website.number, time_ms=second * 1000, beacon=f"{hostname}{second}")
            for second in times
        ]
    )
    return website


def texts(server: Server) -> list[str]:
    return [posted.json["text"] for posted in server.receiver.posted]


GONE = "example.com has gone quiet: its last view was on Jun 15, 2025, 3:06:40\u202fPM."
BACK = "example.com has views again."


@pytest_twisted.ensureDeferred
async def test_a_cause_is_sent_once_and_once_when_it_has_ended(server: Server) -> None:
    website = await visited(server)
    await rule_for(server, website.number, QUIET)
    await look(server)
    assert server.receiver.posted == []
    for _ in range(3):
        await look(server, 4 * HOUR)
    assert texts(server) == [GONE]
    (rule,) = server.store.alerts.of(website.number).rules
    assert (rule.fired, len(rule.causes)) == (NOW + 4 * HOUR, 1)
    view = a_view(website.number, time_ms=int(server.now * 1000), beacon="new")
    await server.store.append([view])
    for _ in range(3):
        await look(server, ENDS_AFTER_S / 2)
    assert texts(server) == [GONE, BACK]
    assert server.store.alerts.of(website.number) == Alerts((evolve(QUIET, fired=rule.fired),))


@pytest_twisted.ensureDeferred
async def test_only_the_primary_of_a_cluster_sends(server: Server) -> None:
    website = await visited(server)
    await rule_for(server, website.number, QUIET)
    server.site.backend.cluster = ClusterState(2, primary=1)
    for _ in range(2):
        await look(server, 4 * HOUR)
    assert texts(server) == []
    server.site.backend.cluster.primary = 2
    await look(server, 4 * HOUR)
    assert texts(server) == [GONE]


@pytest_twisted.ensureDeferred
async def test_what_is_sent_is_signed_for_its_receiver_and_names_the_page(server: Server) -> None:
    website = await visited(server)
    await rule_for(server, website.number, QUIET)
    server.set(public_url="https://stats.example.com", base_path="/stats")
    await look(server, 4 * HOUR)
    (posted,) = server.receiver.posted
    assert posted.url == URL
    content = posted.json
    assert content["link"] == "https://stats.example.com/stats/dashboard/websites/example.com"
    assert content["facts"] == {"last": NOW}
    assert (content["event"], content["website"]) == ("began", "example.com")
    assert posted.headers["X-Medamad-Timestamp"] == str(NOW + 4 * HOUR)


@pytest_twisted.ensureDeferred
async def test_an_unusual_hour_links_to_its_day(server: Server) -> None:
    website = await server.store.add_website("example.com", NOW)
    rule = Rule(id="rule", kind="drop", threshold=50, url=URL)
    server.set(public_url="https://stats.example.com")
    facts: Facts = {"hour": NOW - HOUR, "views": 2, "usual": 9, "percent": 78}
    begun = Alerts((rule,)).with_findings(rule, {"": facts}, [], now=NOW, ids=["notice"])
    await server.store.alerts.change(website.number, lambda _: begun)
    watch_of(server).send_due()
    await sent(server)
    (posted,) = server.receiver.posted
    assert posted.json["link"] == (
        "https://stats.example.com/dashboard/websites/example.com"
        "?from=2025-06-15&to=2025-06-15&zone=UTC"
    )


@pytest_twisted.ensureDeferred
async def test_a_new_referrer_links_to_its_figures(server: Server) -> None:
    website = await server.store.add_website("example.com", NOW)
    rule = Rule(id="rule", kind="referrer", threshold=2, url=URL)
    server.set(public_url="https://stats.example.com")
    facts: Facts = {"referrer": "a&b.example", "visits": 3}
    begun = Alerts((rule,)).with_findings(rule, {"": facts}, [], now=NOW, ids=["notice"])
    await server.store.alerts.change(website.number, lambda _: begun)
    watch_of(server).send_due()
    await sent(server)
    (posted,) = server.receiver.posted
    assert posted.json["link"] == (
        "https://stats.example.com/dashboard/websites/example.com?referrer%5Beq%5D=a%26b.example"
    )


@pytest_twisted.ensureDeferred
async def test_what_comes_and_goes_within_minutes_is_one_cause(server: Server) -> None:
    backups = server.site.backend.backups
    await rule_for(server, SERVICE, Rule(id="rule", kind="backup", url=URL))
    for failure in ("too old", "", "too old", "", "gone", ""):
        backups.failure = failure
        await look(server, ENDS_AFTER_S - 60)
    assert texts(server) == ["The backups need attention: too old"]
    await look(server, ENDS_AFTER_S)
    assert texts(server)[1:] == ["The backups are up to date again."]


@pytest_twisted.ensureDeferred
async def test_a_notice_that_does_not_arrive_is_sent_again_later_and_later(server: Server) -> None:
    server.site.backend.backups.failure = "too old"
    await rule_for(server, SERVICE, Rule(id="rule", kind="backup", url=URL))
    server.receiver.failure = "500 Internal Server Error"
    tried_s = []
    with logged_warnings() as lines:
        for minute in range(40):
            before = len(lines)
            await look(server, 60)
            tried_s += [minute] * (len(lines) - before)
    assert tried_s == [0, 1, 3, 7, 15, 31]
    assert lines[0] == (
        "an alert (backup) of the service did not arrive: 500 Internal Server Error;"
        " retrying in 60 s"
    )
    assert watch_of(server).failure_of(rule_of(server)) == "500 Internal Server Error: go away"
    # What comes after it waits.
    server.site.backend.backups.failure = ""
    await look(server, 60)
    await look(server, ENDS_AFTER_S)
    server.receiver.failure = ""
    first, second = server.store.alerts.of(SERVICE).notices
    await look(server, HOUR)
    assert [posted.json["id"] for posted in server.receiver.posted] == [first.id, second.id]
    assert server.store.alerts.of(SERVICE).notices == ()
    assert watch_of(server).failure_of(rule_of(server)) == ""


@pytest_twisted.ensureDeferred
async def test_a_retry_waits_for_a_minute_from_the_look_that_sent(server: Server) -> None:
    server.site.backend.backups.failure = "too old"
    await rule_for(server, SERVICE, Rule(id="rule", kind="backup", url=URL))
    server.receiver.failure = "500 Internal Server Error"
    with logged_warnings() as lines:
        await look(server, 60)
        # It failed some seconds later than the look.
        await look(server, 50)
        assert len(lines) == 2
        await look(server, 60)
        assert len(lines) == 2


@pytest_twisted.ensureDeferred
async def test_after_a_day_a_notice_is_dropped(server: Server) -> None:
    server.site.backend.backups.failure = "too old"
    await rule_for(server, SERVICE, Rule(id="rule", kind="backup", url=URL))
    server.receiver.failure = "down"
    with logged_warnings() as lines:
        await look(server)
        await look(server, GIVE_UP_S + 60)
    assert lines[1:] == [
        "an alert (backup) of the service did not arrive for a day, and is dropped"
    ]
    assert server.store.alerts.of(SERVICE).notices == ()
    # The cause goes on, so it is not sent again.
    server.receiver.failure = ""
    await look(server, HOUR)
    assert server.receiver.posted == []


@pytest_twisted.ensureDeferred
async def test_a_restart_neither_loses_nor_repeats(server: Server, tmp_path: Path) -> None:
    website = await visited(server)
    await rule_for(server, website.number, QUIET)
    server.receiver.failure = "down"
    with logged_warnings():
        await look(server, 4 * HOUR)
    (notice,) = server.store.alerts.of(website.number).notices
    for _ in range(2):
        await server.store.close()
        again = await build_server(tmp_path, server.now + 60)
        server.store, server.site, server.reactor = again.store, again.site, again.reactor
        server.receiver = again.receiver
        await look(again)
        ids = [posted.json["id"] for posted in again.receiver.posted]
        assert ids == ([notice.id] if notice else [])
        notice = None


@pytest_twisted.ensureDeferred
async def test_what_arrived_is_not_sent_again_while_the_store_cannot_take_that(
    server: Server,
) -> None:
    server.site.backend.backups.failure = "too old"
    await rule_for(server, SERVICE, Rule(id="rule", kind="backup", url=URL))
    stored = server.store.alerts
    server.store.alerts = Refusing(stored)
    for _ in range(3):
        await look(server, 60)
    assert len(server.receiver.posted) == 1
    assert len(stored.of(SERVICE).notices) == 1
    server.store.alerts = stored
    await look(server, 60)
    assert len(server.receiver.posted) == 1
    assert stored.of(SERVICE).notices == ()


REPORT = Subscription(
    id="0123456789ab",
    secret="s" * 24,
    address="ada@example.com",
    websites=(1,),
    every=Every.WEEK,
    day=1,
    hour=8,
    timezone="Europe/Berlin",
    language="de",
    created=NOW,
    confirmed=NOW,
)
MAILED = Rule(id="rule", kind="backup", format="mail", report=REPORT.id)
TOO_OLD = "Die Backups brauchen Aufmerksamkeit: too old"


@pytest.fixture
def mails(server: Server) -> KeptMails:
    """The mails that are sent to the address of a report."""
    server.site.backend.backups.failure = "too old"
    for prepare in (
        server.store.reports.add(b"report", REPORT),
        server.store.alerts.change(SERVICE, lambda _: Alerts((MAILED,))),
    ):
        pytest_twisted.blockon(Deferred.fromCoroutine(prepare))
    assert isinstance(server.site.backend.mailer, KeptMails)
    return server.site.backend.mailer


@pytest_twisted.ensureDeferred
async def test_an_alert_is_mailed_to_the_address_of_a_report(
    server: Server, mails: KeptMails
) -> None:
    server.set(public_url="https://stats.example.com")
    await look(server)
    ((to, subject, text),) = mails.sent
    # In the language of the report.
    assert (to, subject) == ("ada@example.com", TOO_OLD)
    assert text.startswith(f"{TOO_OLD}\n\nhttps://stats.example.com/dashboard/settings/usage\n\n")
    assert server.receiver.posted == []
    assert server.store.alerts.of(SERVICE).notices == ()


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (None, "the report 0123456789ab is gone"),
        (
            evolve(REPORT, confirmed=None),
            "the report 0123456789ab has not been confirmed by its address",
        ),
    ],
)
@pytest_twisted.ensureDeferred
async def test_without_a_confirmed_address_nothing_is_mailed(
    server: Server, mails: KeptMails, change: Subscription | None, reason: str
) -> None:
    await server.store.reports.revoke(b"report")
    if change is not None:
        await server.store.reports.add(b"report", change)
    with logged_warnings():
        await look(server)
    assert mails.sent == []
    assert watch_of(server).failure_of(rule_of(server)) == reason
    trial = await watch_of(server).try_now(SERVICE, "rule")
    assert (trial.error, mails.sent) == (reason, [])


@pytest_twisted.ensureDeferred
async def test_a_refused_mail_is_sent_again_and_its_address_is_not_logged(
    server: Server, mails: KeptMails
) -> None:
    mails.error = MailFailed("550 no such user ada@example.com")
    with logged_warnings() as lines:
        await look(server)
    assert "ada@" not in lines[0]
    assert watch_of(server).failure_of(rule_of(server)) == (
        "the mail was not taken: 550 no such user ada@example.com"
    )
    mails.error = None
    await look(server, 60)
    assert [subject for _, subject, _ in mails.sent] == [TOO_OLD]


@pytest_twisted.ensureDeferred
async def test_a_mail_that_may_have_arrived_is_sent_once_more(
    server: Server, mails: KeptMails
) -> None:
    mails.error = MailFailed("the connection was lost", may_have_arrived=True)
    with logged_warnings() as lines:
        for _ in range(5):
            await look(server, HOUR)
    assert len(lines) == 1
    assert server.store.alerts.of(SERVICE).notices == ()


@pytest_twisted.ensureDeferred
async def test_what_may_have_arrived_elsewhere_is_sent_once_more_where_it_goes_now(
    server: Server, mails: KeptMails
) -> None:
    other = evolve(REPORT, id="ba9876543210", address="bob@example.com")
    await server.store.reports.add(b"other", other)
    mails.error = MailFailed("the connection was lost", may_have_arrived=True)
    with logged_warnings() as lines:
        await look(server)
        await rule_change(server, report=other.id)
        for _ in range(3):
            await look(server, HOUR)
    assert len(lines) == 2
    assert server.store.alerts.of(SERVICE).notices == ()


async def rule_change(server: Server, **changes: object) -> None:
    await server.store.alerts.change(
        SERVICE, lambda old: old.with_changed_rule("rule", lambda rule: evolve(rule, **changes))
    )


ELSEWHERE = "https://other.example.com/"


@pytest_twisted.ensureDeferred
async def test_what_did_not_arrive_is_sent_at_once_where_it_goes_now(server: Server) -> None:
    server.site.backend.backups.failure = "too old"
    await rule_for(server, SERVICE, Rule(id="rule", kind="backup", url=URL))
    server.receiver.failure = "410 Gone"
    with logged_warnings():
        for _ in range(6):
            await look(server, HOUR)
    await rule_change(server, url=ELSEWHERE)
    # What is known of the old place says nothing of the new one.
    assert watch_of(server).failure_of(rule_of(server)) == ""
    server.receiver.failure = ""
    await look(server, 1)
    assert [posted.url for posted in server.receiver.posted] == [ELSEWHERE]


@pytest_twisted.ensureDeferred
async def test_a_failure_after_a_change_is_none_of_the_new_place(server: Server) -> None:
    server.site.backend.backups.failure = "too old"
    await rule_for(server, SERVICE, Rule(id="rule", kind="backup", url=URL))
    post, waiting, posted = server.receiver.post, Deferred[None](), []

    async def stalling(url: str, *arguments: Any) -> None:
        posted.append(url)
        if url == URL:
            await waiting
        await post(url, *arguments)

    watch_of(server)._post = stalling
    await watch_of(server).look()
    await rule_change(server, url=ELSEWHERE)
    with logged_warnings():
        waiting.errback(NotDelivered("no response"))
        await sent(server)
    assert posted == [URL, ELSEWHERE]
    assert watch_of(server).failure_of(rule_of(server)) == ""
    assert server.store.alerts.of(SERVICE).notices == ()


def while_looking(server: Server, change: Callable[[], Coroutine[Any, Any, object]]) -> None:
    """Let something happen before the next look at a rule has ended."""
    backend = server.site.backend
    usual = backend.run_query

    def run(query: Callable[[], Any], **client: Any) -> Deferred[Any]:
        backend.run_query = usual
        found = usual(query, **client)
        return Deferred.fromCoroutine(change()).addCallback(lambda _: found)

    backend.run_query = run


@pytest_twisted.ensureDeferred
async def test_what_a_rule_found_before_a_change_is_not_stored(server: Server) -> None:
    server.site.backend.backups.failure = "too old"
    await rule_for(server, SERVICE, Rule(id="rule", kind="backup", url=URL))
    while_looking(server, lambda: rule_change(server, kind="damage"))
    await look(server)
    assert server.store.alerts.of(SERVICE) == Alerts((Rule(id="rule", kind="damage", url=URL),))
    assert server.receiver.posted == []


@pytest_twisted.ensureDeferred
async def test_a_test_is_of_the_rule_as_it_is_when_it_is_sent(server: Server) -> None:
    server.site.backend.backups.failure = "too old"
    await rule_for(server, SERVICE, Rule(id="rule", kind="damage", url=URL))
    while_looking(server, lambda: rule_change(server, kind="backup", url=ELSEWHERE))
    trial = await watch_of(server).try_now(SERVICE, "rule")
    assert trial.is_firing
    assert [posted.url for posted in server.receiver.posted] == [ELSEWHERE]
    while_looking(server, lambda: rule_for(server, SERVICE))
    with pytest.raises(NotFound, match=r"^there is no alert rule$"):
        await watch_of(server).try_now(SERVICE, "rule")
    assert len(server.receiver.posted) == 1


@pytest_twisted.ensureDeferred
async def test_what_is_a_day_old_at_the_start_is_tried_once(server: Server) -> None:
    server.site.backend.backups.failure = "too old"
    rule = Rule(id="rule", kind="backup", url=URL)
    begun = Alerts((rule,)).with_findings(rule, {"": {"reason": "x"}}, [], now=NOW, ids=["notice"])
    await server.store.alerts.change(SERVICE, lambda _: begun)
    await look(server, 2 * GIVE_UP_S)
    assert [posted.json["id"] for posted in server.receiver.posted] == ["notice"]


@pytest_twisted.ensureDeferred
async def test_stopping_ends_what_is_being_sent_and_keeps_it(server: Server) -> None:
    server.site.backend.backups.failure = "too old"
    await rule_for(server, SERVICE, Rule(id="rule", kind="backup", url=URL))
    cancelled = []

    async def never(*_request: object) -> None:
        await Deferred(lambda _: cancelled.append(True))

    watch = AlertWatch(server.site.backend, never, str, 0)
    await watch.look()
    watch.stop()
    assert cancelled == [True]
    assert len(server.store.alerts.of(SERVICE).notices) == 1


@pytest_twisted.ensureDeferred
async def test_the_alerts_of_the_service(server: Server) -> None:
    backend, store = server.site.backend, server.store
    website = await store.add_website("example.com", NOW)
    rules = [
        evolve(DISK, id=kind, kind=kind, threshold=threshold, format="json")
        for kind, threshold in (("disk", 1_000_000), ("limits", None), ("damage", None))
    ]
    await rule_for(server, SERVICE, *rules)
    store.dictionary.reached[website.number, Dimension.PATH] = NOW // 86_400
    store.websites.damaged = ("website 7: its checksum does not match",)
    backend.backups.failure = "too old"
    free = store.free_space.free_disk() >> 30
    await look(server)
    assert texts(server) == [
        f"The disk of the store has {free:,} GiB left.",
        "example.com has used up its daily limit on new values: path.",
        "The store has damaged data: website 7: its checksum does not match",
    ]
    assert {posted.json["website"] for posted in server.receiver.posted} == {None}
    await look(server, 24 * HOUR)
    await look(server, ENDS_AFTER_S)
    assert texts(server)[3:] == ["example.com has room for new values again: path."]


@pytest_twisted.ensureDeferred
async def test_a_failed_import_is_reported_until_one_is_complete(server: Server) -> None:
    website = await server.store.add_website("example.com", NOW)
    other = await server.store.add_website("other.example", NOW)
    await rule_for(
        server, SERVICE, evolve(DISK, id="i", kind="import", threshold=None, format="json")
    )
    failures = server.site.backend.import_failures
    failures |= {website.number: "access.log: no such file", other.number: ""}
    await look(server)
    failed = "An import into example.com failed: access.log: no such file"
    assert texts(server) == [failed]
    # After a restart it is unknown, which is no end.
    failures.clear()
    await look(server)
    await look(server, ENDS_AFTER_S)
    assert texts(server) == [failed]
    failures[website.number] = ""
    await look(server)
    await look(server, ENDS_AFTER_S)
    assert texts(server)[1:] == ["An import into example.com was complete again."]
    failures[other.number] = "no"
    await look(server)
    await server.store.delete_website(other)
    await look(server)
    await look(server, ENDS_AFTER_S)
    assert len(texts(server)) == 4


@pytest_twisted.ensureDeferred
async def test_a_test_says_what_would_be_said_and_changes_nothing(server: Server) -> None:
    website = await visited(server)
    await rule_for(server, website.number, QUIET)
    nothing = "This is a test. At the moment, the alert has nothing to report."
    assert await watch_of(server).try_now(website.number, "rule") == Trial(nothing, False, "")
    server.now += 4 * HOUR
    await Watch(server.site.backend, 0).look()
    server.receiver.failure = "404 Not Found"
    text = f"This is a test. At the moment, the alert would say: {GONE}"
    failed = Trial(text, True, "404 Not Found: go away")
    assert await watch_of(server).try_now(website.number, "rule") == failed
    assert texts(server) == [nothing]
    assert server.receiver.posted[0].json["event"] == "test"
    assert server.store.alerts.of(website.number) == Alerts((QUIET,))
    with pytest.raises(NotFound, match=r"^there is no alert other$"):
        await watch_of(server).try_now(website.number, "other")


@pytest_twisted.ensureDeferred
async def test_what_cannot_be_looked_at_does_not_keep_others_from_it(server: Server) -> None:
    website, other = await visited(server), await visited(server, "other.example")
    for number in (website.number, other.number):
        await rule_for(server, number, evolve(QUIET, id=f"rule{number}"))
    server.now += 4 * HOUR
    await Watch(server.site.backend, 0).look()
    usual, turns = server.site.backend.run_query, iter([fail(Unavailable("", retry_after=1))])
    server.site.backend.run_query = lambda query, **_: next(turns, None) or usual(query)
    await watch_of(server).look()
    await sent(server)
    assert [posted.json["website"] for posted in server.receiver.posted] == ["other.example"]
    await look(server)
    assert len(server.receiver.posted) == 2


@pytest_twisted.ensureDeferred
async def test_nothing_is_missed_that_the_cluster_does_not_have_yet(server: Server) -> None:
    website = await visited(server)
    await rule_for(server, website.number, QUIET)
    behind = server.site.backend.cluster = ClusterState(1, waiting_since=server.now)
    await look(server, 4 * HOUR)
    assert server.receiver.posted == []
    assert server.site.backend.quiet == {}
    with pytest.raises(Unavailable, match="does not have the latest hits"):
        await watch_of(server).try_now(website.number, "rule")
    behind.waiting_since = server.now
    await look(server, 60)
    assert texts(server) == [GONE]


@pytest_twisted.ensureDeferred
async def test_rules_take_turns_with_requests(server: Server) -> None:
    website = await visited(server)
    await rule_for(server, website.number, QUIET)
    clients = []

    def note(_query: object, client: tuple[str, ...] = ()) -> Deferred[object]:
        clients.append(client)
        return succeed({})

    server.site.backend.run_query = note
    await watch_of(server).look()
    assert clients == [("alerts",)]


@pytest_twisted.ensureDeferred
async def test_a_demo_sends_nothing(server: Server) -> None:
    await rule_for(server, SERVICE, DISK)
    server.set(demo=True)
    await look(server)
    assert (server.receiver.posted, server.store.alerts.of(SERVICE).notices) == ([], ())


@pytest_twisted.ensureDeferred
async def test_sentences_are_in_the_language_of_the_account(server: Server) -> None:
    await rule_for(server, SERVICE, evolve(DISK, format="slack"))
    await server.store.account.change(
        lambda old: evolve(old, settings=evolve(old.settings, language="de"))
    )
    await look(server)
    (posted,) = server.receiver.posted
    assert posted.json["text"].startswith("Auf der Festplatte der Datenbank sind noch ")
