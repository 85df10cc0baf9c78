"""Reports that are due, mailed to a real mail server."""

from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from threading import Event
from typing import Any

import pytest
import pytest_twisted
from aiosmtpd.smtp import SMTP
from attrs import evolve
from support.log_failures import LoggedFailures
from support.mail_server import PASSWORD, USER, MailServer, accept, answer, mail_server, stall
from support.storage.hits import a_view
from support.web.daemon_in_memory import NOW, Server, build_server
from twisted.internet import reactor
from twisted.internet.defer import CancelledError, Deferred, DeferredList, execute
from twisted.logger import LogEvent, formatEvent, globalLogPublisher

from medamad.daemon import report_delivery
from medamad.daemon.report_delivery import ReportDelivery
from medamad.domain.annotations import Annotation
from medamad.domain.cluster import ClusterState, OtherCollector
from medamad.domain.subscriptions import Every, Subscription
from medamad.mail.figures import WebsiteFigures
from medamad.mail.mailer import Mailer
from medamad.mail.settings import MailSettings, Patience

HOUR, WEEK = 3_600, 7 * 86_400
DUE = int(datetime.fromisoformat("2025-06-16T08:00:00+00:00").timestamp())
"""The first Monday after NOW, at eight."""
TO = "owner@example.com"
SHORT = Patience(connection_s=60, response_s=2, delivery_s=2)


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    built = pytest_twisted.blockon(Deferred.fromCoroutine(build_server(tmp_path)))
    yield built
    pytest_twisted.blockon(Deferred.fromCoroutine(built.store.close()))


@pytest.fixture
def mails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[MailServer]:
    with mail_server(tmp_path / "mail") as running:
        monkeypatch.setenv("SSL_CERT_FILE", str(running.trusted))
        yield running


@pytest.fixture
def logged() -> Iterator[list[str]]:
    lines: list[str] = []

    def observe(event: LogEvent) -> None:
        lines.append(str(formatEvent(event)))

    globalLogPublisher.addObserver(observe)
    yield lines
    globalLogPublisher.removeObserver(observe)


def connect(server: Server, port: int, patience: Patience = Patience()) -> ReportDelivery:  # noqa: B008 - it is frozen
    backend = server.site.backend
    settings = MailSettings(
        host="localhost",
        port=port,
        user=USER,
        password=PASSWORD,
        sender="stats@example.org",
        url="https://stats.example.com/stats",
    )
    backend.mailer = Mailer(settings, reactor, backend.clock, execute, patience)
    return ReportDelivery(backend)


async def subscribe(server: Server, number: int = 1, **changes: Any) -> Subscription:
    hostname = f"{number}.example"
    website = server.store.websites.by_hostname(hostname)
    website = website or await server.store.add_website(hostname, 1)
    time_ms = (DUE - 2 * 86_400) * 1000
    await server.store.append([a_view(website.number, time_ms=time_ms, beacon=f"b{number}")])
    given: dict[str, Any] = {
        "id": f"id{number}",
        "secret": f"secret{number}",
        "address": TO,
        "websites": (website.number,),
        "every": Every.WEEK,
        "day": 1,
        "hour": 8,
        "timezone": "UTC",
        "language": "en",
        "created": NOW,
        "confirmed": NOW,
    }
    made = Subscription(**given | changes)
    await server.store.reports.add(made.id.encode(), made)
    return made


def subscription(server: Server, number: int = 1) -> Subscription:
    found = server.store.reports.find(f"id{number}".encode())
    assert found is not None
    return found


@pytest_twisted.ensureDeferred
async def test_a_report_is_mailed_once_when_it_is_due(
    server: Server, mails: MailServer, logged: list[str]
) -> None:
    delivery = connect(server, mails.port)
    await subscribe(server)
    await server.store.annotations.change(
        subscription(server).websites[0],
        lambda old: old.with_annotation(Annotation(id="a", time="2025-06-11", text="Deploy")),
    )
    server.now = DUE - 1
    await delivery.look()
    assert not mails.received.mails
    # Where another collector is the primary, that one mails it.
    server.now = DUE
    server.site.backend.cluster = ClusterState(2, primary=1)
    await delivery.look()
    assert not mails.received.mails
    server.site.backend.cluster.primary = 2
    for moment in (DUE, DUE + HOUR, DUE + WEEK - 1, DUE, DUE - WEEK, NOW - 5 * WEEK):
        server.now = moment
        await delivery.look()
        assert mails.received.recipients == [TO]
    (mail,) = mails.received.parsed
    assert mail["To"] == TO
    assert mail["Subject"].replace("\u2009", " ").startswith("Weekly report for 1.example: Jun 9")
    assert mail["Message-ID"] == "<report.id1.2025-06-09@example.org>"
    page = "https://stats.example.com/stats/mail/secret1/unsubscribe"
    assert mail["List-Unsubscribe"] == f"<{page}>"
    assert mail["List-Unsubscribe-Post"] == "List-Unsubscribe=One-Click"
    text = mail.get_body(("plain",)).get_content()
    html = mail.get_body(("html",)).get_content()
    assert page in text
    assert f'href="{page}"' in html
    assert "was due" not in text
    assert "  Wed, Jun 11  Deploy" in text
    assert " ".join(text.split()).count("Views 1 before: 0") == 1
    server.now = DUE + WEEK
    await delivery.look()
    assert [mail["Message-ID"] for mail in mails.received.parsed][1:] == [
        "<report.id1.2025-06-16@example.org>"
    ]
    assert not [line for line in logged if TO in line]


@pytest_twisted.ensureDeferred
async def test_a_demo_mails_nothing(server: Server, mails: MailServer) -> None:
    delivery = connect(server, mails.port)
    await subscribe(server)
    server.now = DUE
    server.set(demo=True)
    await delivery.look()
    assert mails.received.mails == []
    assert server.site.backend.report_failures == {}


@pytest_twisted.ensureDeferred
async def test_a_lost_response_lets_it_be_mailed_once_more_as_the_same(
    server: Server, mails: MailServer
) -> None:
    delivery = connect(server, mails.port)
    await subscribe(server)
    server.now = DUE
    mails.received.loses_answers = 1
    await delivery.look()
    assert subscription(server).tries == 1
    await delivery.look()
    assert len(mails.received.mails) == 1, "the pause is not over"
    for _ in range(3):
        server.reactor.advance(4_000)
        await delivery.look()
    ids = [mail["Message-ID"] for mail in mails.received.parsed]
    assert ids == ["<report.id1.2025-06-09@example.org>"] * 2
    assert server.site.backend.report_failures == {}


@pytest_twisted.ensureDeferred
async def test_it_is_not_mailed_a_third_time(server: Server, mails: MailServer) -> None:
    delivery = connect(server, mails.port)
    await subscribe(server)
    server.now = DUE
    mails.received.loses_answers = 5
    for _ in range(4):
        await delivery.look()
        server.reactor.advance(4_000)
    assert len(mails.received.mails) == 2
    assert subscription(server).done == ("2025-06-09",)


@pytest.mark.parametrize("loses", [0, 1])
@pytest_twisted.ensureDeferred
async def test_a_restart_neither_loses_nor_repeats_a_report(
    tmp_path: Path, mails: MailServer, loses: int
) -> None:
    mails.received.loses_answers = loses
    for start in range(4):
        server = await build_server(tmp_path)
        if not start:
            await subscribe(server)
        server.now = DUE
        await connect(server, mails.port).look()
        await server.store.close()
    ids = [mail["Message-ID"] for mail in mails.received.parsed]
    assert ids == ["<report.id1.2025-06-09@example.org>"] * (1 + loses)


@pytest_twisted.ensureDeferred
async def test_a_daemon_that_was_stopped_while_it_mailed_does_so_once_more(
    tmp_path: Path, mails: MailServer
) -> None:
    server = await build_server(tmp_path)
    await subscribe(server)
    being_taken = Event()

    async def take_and_stall(connection: SMTP) -> str:
        being_taken.set()
        return await stall(connection)

    mails.received.on_mail = take_and_stall
    server.now = DUE
    mailing = Deferred.fromCoroutine(connect(server, mails.port).look())
    await _until(being_taken)
    mailing.cancel()
    with pytest.raises(CancelledError):
        await mailing
    await server.store.close()
    mails.received.on_mail = accept
    server = await build_server(tmp_path)
    server.now = DUE
    delivery = connect(server, mails.port)
    for _ in range(2):
        await delivery.look()
    await server.store.close()
    assert len(mails.received.mails) == 1


async def _until(happened: Event) -> None:
    """Wait until something has happened in the thread of the mail server."""
    while not happened.is_set():
        waiting: Deferred[None] = Deferred()
        reactor.callLater(0.01, waiting.callback, None)
        await waiting


@pytest_twisted.ensureDeferred
async def test_one_that_is_late_says_so(server: Server, mails: MailServer) -> None:
    delivery = connect(server, mails.port)
    await subscribe(server, timezone="Europe/Berlin")
    server.now = DUE + 3 * 86_400
    await delivery.look()
    await delivery.look()
    (mail,) = mails.received.parsed
    text = mail.get_body(("plain",)).get_content()
    assert "This report was due on 6/16/25, 8:00" in text.replace("\u202f", " ")


@pytest.mark.parametrize(
    ("said", "is_final"), [("550 5.1.1 no such user here", True), ("451 4.3.0 later", False)]
)
@pytest_twisted.ensureDeferred
async def test_a_refusal_is_kept_for_the_owner_and_final_if_the_server_says_so(
    server: Server, mails: MailServer, logged: list[str], said: str, *, is_final: bool
) -> None:
    delivery = connect(server, mails.port)
    await subscribe(server)
    await subscribe(server, 2, address="other@example.com")
    server.now = DUE
    mails.received.on_recipient = answer(said)
    await delivery.look()
    failures = server.site.backend.report_failures
    assert failures == dict.fromkeys(("id1", "id2"), f"localhost:{mails.port}: {said}")
    assert not [line for line in logged if said in line]
    assert any("the report id1 could not be mailed" in line for line in logged)
    mails.received.on_recipient = accept
    server.reactor.advance(59)
    await delivery.look()
    assert not mails.received.mails
    server.reactor.advance(1)
    await delivery.look()
    assert mails.received.recipients == ([] if is_final else [TO, "other@example.com"])


@pytest_twisted.ensureDeferred
async def test_while_the_server_is_away_nothing_is_lost(server: Server, mails: MailServer) -> None:
    delivery = connect(server, mails.port, SHORT)
    for number in (1, 2, 3):
        await subscribe(server, number)
    server.now = DUE
    mails.received.on_sender = stall
    await delivery.look()
    assert len(mails.received.senders) == 1, "the others would fail as well"
    assert [subscription(server, number).tries for number in (1, 2, 3)] == [0, 0, 0]
    mails.received.on_sender = accept
    server.reactor.advance(60)
    await delivery.look()
    assert [mail["Message-ID"].split(".")[1] for mail in mails.received.parsed] == [
        "id1",
        "id2",
        "id3",
    ]


@pytest_twisted.ensureDeferred
async def test_one_that_cannot_be_made_does_not_keep_others_from_being_mailed(
    server: Server,
    mails: MailServer,
    logged_failures: LoggedFailures,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    delivery = connect(server, mails.port)
    for number in (1, 2):
        await subscribe(server, number)
    server.now = DUE
    usual = report_delivery.website_figures

    def fail_for_one(reader: Any, hostname: str, *others: Any, **options: Any) -> WebsiteFigures:
        if hostname == "1.example":
            raise ArithmeticError
        return usual(reader, hostname, *others, **options)

    with monkeypatch.context() as patch:
        patch.setattr(report_delivery, "website_figures", fail_for_one)
        for _ in range(2):
            await delivery.look()
    assert len(logged_failures.take(ArithmeticError)) == 1, "it is not tried again at once"
    assert [mail["Message-ID"].split(".")[1] for mail in mails.received.parsed] == ["id2"]
    server.reactor.advance(60)
    await delivery.look()
    assert [mail["Message-ID"].split(".")[1] for mail in mails.received.parsed] == ["id2", "id1"]


@pytest_twisted.ensureDeferred
async def test_pauses_grow_to_an_hour(server: Server, mails: MailServer) -> None:
    delivery = connect(server, mails.port)
    await subscribe(server)
    server.now = DUE
    mails.received.on_sender = answer("451 later")
    pauses, since = [], 0
    for second in range(0, 4 * HOUR, 30):
        before = len(mails.received.senders)
        await delivery.look()
        if len(mails.received.senders) > before:
            pauses.append(second - since)
            since = second
        server.reactor.advance(30)
    assert pauses == [0, 60, 120, 240, 480, 960, 1920, 3600, 3600]


@pytest_twisted.ensureDeferred
async def test_nothing_is_mailed_without_a_confirmation_or_a_website(
    server: Server, mails: MailServer
) -> None:
    delivery = connect(server, mails.port)
    await subscribe(server, confirmed=None)
    made = await subscribe(server, 2)
    other = await subscribe(server, 3)
    await server.store.reports.change(
        b"id3", lambda old: evolve(old, websites=(*made.websites, *other.websites))
    )
    website = server.store.websites.by_number(made.websites[0])
    assert website is not None
    await server.store.delete_website(website)
    server.now = DUE
    await delivery.look()
    (mail,) = mails.received.parsed
    assert "3.example" in mail["Subject"]
    assert "2.example" not in mail["Subject"]
    assert server.store.reports.find(b"id2") is None


@pytest_twisted.ensureDeferred
async def test_one_that_is_ended_meanwhile_is_not_mailed(server: Server, mails: MailServer) -> None:
    delivery = connect(server, mails.port)
    await subscribe(server)
    server.now = DUE
    backend = server.site.backend
    run_query = backend.run_query

    def ending(query: Any, client: Any = ()) -> Any:
        result = run_query(query, client=client)
        ended = Deferred.fromCoroutine(server.store.reports.revoke(b"id1"))
        return ended.addCallback(lambda _: result)

    backend.run_query = ending
    await delivery.look()
    assert not mails.received.senders


@pytest_twisted.ensureDeferred
async def test_one_that_is_changed_meanwhile_is_mailed_as_it_is_then(
    server: Server, mails: MailServer
) -> None:
    delivery = connect(server, mails.port)
    await subscribe(server)
    await subscribe(server, 2)
    other = subscription(server, 2).websites
    server.now = DUE
    backend = server.site.backend
    run_query = backend.run_query

    def changing(query: Any, client: Any = ()) -> Any:
        backend.run_query = run_query
        changes = [
            server.store.reports.change(b"id1", lambda old: evolve(old, websites=other)),
            server.store.reports.change(b"id2", lambda old: evolve(old, hour=9)),
        ]
        result = run_query(query, client=client)
        changed = DeferredList([Deferred.fromCoroutine(each) for each in changes])
        return changed.addCallback(lambda _: result)

    backend.run_query = changing
    await delivery.look()
    assert mails.received.mails == []
    await delivery.look()
    (mail,) = mails.received.parsed
    assert mail["Message-ID"] == "<report.id1.2025-06-09@example.org>"
    assert "2.example" in mail["Subject"]


@pytest_twisted.ensureDeferred
async def test_what_was_confirmed_while_the_clock_was_ahead_is_mailed(
    server: Server, mails: MailServer
) -> None:
    delivery = connect(server, mails.port)
    await subscribe(server, confirmed=NOW + 300 * WEEK)
    for moment, count in ((NOW, 0), (DUE - 1, 0), (DUE, 1)):
        server.now = moment
        await delivery.look()
        assert len(mails.received.mails) == count


@pytest_twisted.ensureDeferred
async def test_reports_wait_for_what_the_cluster_does_not_have_yet(
    server: Server, mails: MailServer
) -> None:
    delivery = connect(server, mails.port)
    await subscribe(server)
    server.now = DUE
    behind = server.site.backend.cluster = ClusterState(1, waiting_since=DUE - 61)
    await delivery.look()
    assert mails.received.senders == []
    behind.waiting_since = None
    other = behind.others[2] = OtherCollector("http://b:8080", failure="", lag_s=61)
    await delivery.look()
    assert mails.received.senders == []
    other.lag_s = 60
    await delivery.look()
    assert mails.received.recipients == [TO]


@pytest_twisted.ensureDeferred
async def test_without_a_mail_server_reports_wait(server: Server, mails: MailServer) -> None:
    server.site.backend.mailer.settings = MailSettings()
    delivery = ReportDelivery(server.site.backend)
    await subscribe(server)
    server.now = DUE
    await delivery.look()
    assert "no mail server is configured" in server.site.backend.report_failures["id1"]
    delivery = connect(server, mails.port)
    await delivery.look()
    assert mails.received.recipients == [TO]
