import re

import pytest
import pytest_twisted
from attrs import evolve
from support.web.client import Answer, Browser
from support.web.daemon_in_memory import NOW, KeptMails, Server

from medamad.accounts.tokens import make_token
from medamad.domain.accounts import Scope
from medamad.domain.cluster import ClusterState, OtherCollector
from medamad.domain.subscriptions import MAX_SUBSCRIPTIONS, Subscription
from medamad.mail.settings import MailFailed, MailSettings

REPORTS = "/user/reports"
DETAILS = {"address": "ada@example.com", "websites": ["Example.com"]}
FORM = {"Content-Type": "application/x-www-form-urlencoded"}


def kept(server: Server) -> KeptMails:
    mailer = server.site.backend.mailer
    assert isinstance(mailer, KeptMails)
    return mailer


def only(server: Server) -> Subscription:
    ((_, subscription),) = server.store.reports.all()
    return subscription


def text(answer: Answer) -> str:
    assert answer.header("Content-Type") == "text/html; charset=utf-8"
    policy = answer.header("Content-Security-Policy")
    assert policy is not None
    assert policy.startswith("default-src 'none'; style-src 'sha256-")
    assert answer.header("Cache-Control") == "no-store"
    assert answer.header("Referrer-Policy") == "no-referrer"
    return answer.body.decode("utf-8")


@pytest.mark.parametrize("prefix", ["", "/api"])
@pytest.mark.usefixtures("website")
@pytest_twisted.ensureDeferred
async def test_a_report_is_added_confirmed_listed_and_ended(
    server: Server, owner: Browser, visitor: Browser, prefix: str
) -> None:
    assert (await owner.ask("GET", prefix + REPORTS)).json == []
    added = await owner.ask("POST", prefix + REPORTS, DETAILS | {"timezone": "Europe/Berlin"})
    assert added.status == 201
    report = only(server)
    known = {
        "id": report.id,
        "address": "ada@example.com",
        "websites": ["example.com"],
        "every": "week",
        "day": 1,
        "hour": 8,
        "timezone": "Europe/Berlin",
        "language": "en",
        "confirmed": False,
        "dateCreated": NOW,
    }
    assert added.json == known
    assert report.secret not in added.body.decode()
    ((to, subject, said),) = kept(server).sent
    assert (to, subject) == ("ada@example.com", "Confirm reports for example.com")
    (link,) = re.findall(r"https://stats\.example\.com(/mail/\S+)", said)
    asked = await visitor.ask("GET", link)
    assert "Do you want to get the reports for example.com?" in text(asked)
    assert "<form" in text(asked)
    assert only(server).confirmed is None
    server.now += 5
    confirmed = await visitor.ask("POST", link, headers=FORM)
    assert "This address is confirmed." in text(confirmed)
    assert only(server).confirmed == NOW + 5
    server.now += 5
    for method in ("POST", "GET"):
        assert "This address is confirmed." in text(await visitor.ask(method, link))
    assert only(server).confirmed == NOW + 5
    assert (await owner.ask("GET", prefix + REPORTS)).json == [known | {"confirmed": True}]
    server.site.backend.report_failures[report.id] = "mail.example.com:587: 550 no"
    listed = (await owner.ask("GET", prefix + REPORTS)).json
    assert listed == [known | {"confirmed": True, "failure": "mail.example.com:587: 550 no"}]
    removed = await owner.ask("DELETE", f"{prefix}{REPORTS}/{report.id}")
    assert (removed.status, server.store.reports.all()) == (204, [])
    again = await owner.ask("DELETE", f"{prefix}{REPORTS}/{report.id}")
    assert (again.status, again.error) == (404, f"there is no report {report.id}")


@pytest.mark.usefixtures("website")
@pytest_twisted.ensureDeferred
async def test_a_report_is_changed_without_another_question(server: Server, owner: Browser) -> None:
    await server.store.add_website("example.org", NOW)
    added = (await owner.ask("POST", REPORTS, DETAILS)).json
    assert isinstance(added, dict)
    one = f"{REPORTS}/{added['id']}"
    before = only(server)
    wanted = {
        "websites": ["example.org", "example.com"],
        "every": "month",
        "day": 28,
        "hour": 23,
        "timezone": "Asia/Tokyo",
        "language": "ja",
    }
    server.now += 5
    changed = await owner.ask("PATCH", one, wanted)
    assert (changed.status, changed.json) == (200, added | wanted)
    assert (await owner.ask("GET", REPORTS)).json == [added | wanted]
    assert (only(server).secret, only(server).changed) == (before.secret, 0)
    assert len(kept(server).sent) == 1
    for change, error in (
        ({"every": "week"}, "day: expected 1 to 7"),
        ({"hour": 24}, "hour: expected 0 to 23"),
        ({"websites": []}, "websites: expected 1 to 100 hostnames"),
        ({"address": "b@example.com"}, "address: cannot be changed, add a report for the other"),
    ):
        refused = await owner.ask("PATCH", one, change)
        assert refused.status == 400
        assert error in refused.error
    assert (await owner.ask("GET", REPORTS)).json == [added | wanted]
    same = await owner.ask("PATCH", one, {"address": "ada@example.com", "every": "week", "day": 7})
    assert (same.status, same.json) == (200, added | wanted | {"every": "week", "day": 7})
    missing = await owner.ask("PATCH", f"{REPORTS}/0123456789ab", {})
    assert (missing.status, missing.error) == (404, "there is no report 0123456789ab")


@pytest.mark.usefixtures("website")
@pytest_twisted.ensureDeferred
async def test_an_address_is_asked_once(server: Server, owner: Browser, visitor: Browser) -> None:
    await owner.ask("POST", "/websites", {"hostname": "b.example"})
    await owner.ask("POST", REPORTS, DETAILS)
    second = await owner.ask("POST", REPORTS, DETAILS | {"websites": ["b.example"]})
    assert isinstance(second.json, dict)
    assert second.json["confirmed"] is False
    assert len(kept(server).sent) == 1
    # Ending the first one leaves the link of the only mail to the second one.
    (_, first), _ = server.store.reports.all()
    page = f"/mail/{first.secret}"
    asked = text(await visitor.ask("GET", f"{page}/confirm"))
    assert "Do you want to get the reports for example.com, b.example?" in asked
    await owner.ask("DELETE", f"{REPORTS}/{first.id}")
    assert "reports for b.example?" in text(await visitor.ask("GET", f"{page}/confirm"))
    await owner.ask("POST", REPORTS, DETAILS)
    await visitor.ask("POST", f"{page}/confirm", headers=FORM)
    assert [each.confirmed for _, each in server.store.reports.all()] == [NOW, NOW]
    assert "This address is confirmed." in text(await visitor.ask("GET", f"{page}/confirm"))
    server.now += 1
    third = await owner.ask("POST", REPORTS, DETAILS | {"every": "month", "day": 28})
    assert isinstance(third.json, dict)
    assert third.json["confirmed"] is True
    assert len(kept(server).sent) == 1
    # From now on, each is ended alone.
    assert len({each.secret for _, each in server.store.reports.all()}) == 3
    await visitor.ask("POST", f"{page}/unsubscribe", headers=FORM)
    assert len(server.store.reports.all()) == 2
    other = await owner.ask("POST", REPORTS, DETAILS | {"address": "other@example.com"})
    assert isinstance(other.json, dict)
    assert other.json["confirmed"] is False
    assert len(kept(server).sent) == 2


@pytest.mark.usefixtures("website")
@pytest_twisted.ensureDeferred
async def test_an_address_without_reports_is_asked_again(
    server: Server, owner: Browser, visitor: Browser
) -> None:
    for _ in range(2):
        await owner.ask("POST", REPORTS, DETAILS)
    assert len(kept(server).sent) == 1
    page = f"/mail/{server.store.reports.all()[0][1].secret}/unsubscribe"
    await visitor.ask("POST", page, headers=FORM)
    assert server.store.reports.all() == []
    await owner.ask("POST", REPORTS, DETAILS)
    assert len(kept(server).sent) == 2


@pytest.mark.usefixtures("website")
@pytest_twisted.ensureDeferred
async def test_unsubscribing_needs_no_login_and_asks_first(
    server: Server, owner: Browser, visitor: Browser
) -> None:
    await owner.ask("PATCH", "/user", {"settings": {"language": "de"}})
    await owner.ask("POST", REPORTS, DETAILS | {"language": "fr"})
    page = f"/mail/{only(server).secret}/unsubscribe"
    asked = text(await visitor.ask("GET", page))
    assert '<html lang="fr">' in asked
    assert "Ne voulez-vous plus de rapports pour example.com ?" in asked
    assert len(server.store.reports.all()) == 1
    one_click = {"Content-Type": "application/x-www-form-urlencoded"}
    body = b"List-Unsubscribe=One-Click"
    done = await visitor.ask("POST", page, body=body, headers=one_click)
    assert (done.status, server.store.reports.all()) == (200, [])
    assert "Rien ne sera envoyé." in text(done)
    again = await visitor.ask("POST", page, body=body, headers=one_click)
    assert (again.status, "Es wird nichts gesendet." in text(again)) == (200, True)


@pytest.mark.parametrize("what", ["confirm", "unsubscribe"])
@pytest.mark.usefixtures("website")
@pytest_twisted.ensureDeferred
async def test_a_page_says_that_a_collector_with_a_copy_stores_nothing(
    server: Server, owner: Browser, visitor: Browser, what: str
) -> None:
    await owner.ask("POST", REPORTS, DETAILS | {"language": "fr"})
    before = only(server)
    others = {1: OtherCollector("http://192.0.2.1:8080", "timed out")}
    server.site.backend.cluster = ClusterState(2, primary=1, others=others)
    answer = await visitor.ask("POST", f"/mail/{before.secret}/{what}", headers=FORM)
    assert (answer.status, answer.header("Retry-After")) == (503, "10")
    assert '<html lang="fr">' in text(answer)
    assert "Le serveur ne peut pas enregistrer cela pour le moment." in text(answer)
    assert only(server) == before
    # One that is not known here may be on the primary.
    answer = await visitor.ask("POST", f"/mail/unknown/{what}", headers=FORM)
    assert (answer.status, '<html lang="en">' in text(answer)) == (503, True)


@pytest.mark.parametrize("what", ["confirm", "unsubscribe"])
@pytest_twisted.ensureDeferred
async def test_a_link_that_nobody_gave_out_opens_nothing(
    server: Server, visitor: Browser, what: str
) -> None:
    for secret in ("x", "%C3%A4", "x" * 5000):
        answer = await visitor.ask("GET", f"/mail/{secret}/{what}")
        assert answer.status == 404
        assert "Nothing will be sent." in text(answer)
    assert server.store.reports.all() == []


@pytest.mark.parametrize(
    ("changes", "status", "error"),
    [
        ({"address": "ada"}, 400, "address: expected an address such as ada@example.com"),
        ({"address": "a@b\r\nBcc: c@d"}, 400, "address: expected an address such as"),
        ({"websites": []}, 400, "websites: expected 1 to 100 hostnames"),
        ({"websites": ["a.example"]}, 404, "hostname: no website a.example is registered"),
        ({"every": "year"}, 400, "every: "),
        ({"day": 0}, 400, "day: expected 1 to 7"),
        ({"day": 8}, 400, "day: expected 1 to 7"),
        ({"every": "month", "day": 29}, 400, "day: expected 1 to 28"),
        ({"hour": 24}, 400, "hour: expected 0 to 23"),
        ({"timezone": "Mars"}, 400, "timezone: expected an IANA time zone"),
        ({"language": "la"}, 400, "language: expected one of en, de"),
    ],
)
@pytest.mark.usefixtures("website")
@pytest_twisted.ensureDeferred
async def test_bad_input_names_the_field_and_nothing_is_stored_or_sent(
    server: Server, owner: Browser, changes: dict[str, object], status: int, error: str
) -> None:
    refused = await owner.ask("POST", REPORTS, DETAILS | changes)
    assert refused.status == status
    assert error in refused.error
    assert server.store.reports.all() == []
    assert kept(server).sent == []


@pytest.mark.usefixtures("website")
@pytest_twisted.ensureDeferred
async def test_without_a_mail_server_or_an_address_nothing_is_added(
    server: Server, owner: Browser
) -> None:
    mailer = kept(server)
    mailer.settings = evolve(mailer.settings, url="")
    refused = await owner.ask("POST", REPORTS, DETAILS)
    assert (refused.status, refused.error.startswith("public_url: set it")) == (409, True)
    mailer.settings = MailSettings(url="https://stats.example.com")
    refused = await owner.ask("POST", REPORTS, DETAILS)
    assert (refused.status, "set host and from" in refused.error) == (409, True)
    assert server.store.reports.all() == []


@pytest.mark.parametrize("may_have_arrived", [False, True])
@pytest.mark.usefixtures("website")
@pytest_twisted.ensureDeferred
async def test_if_the_question_cannot_be_sent_the_server_says_why(
    server: Server, owner: Browser, *, may_have_arrived: bool
) -> None:
    said = "mail.example.com:587: 550 no such user"
    kept(server).error = MailFailed(said, may_have_arrived=may_have_arrived)
    refused = await owner.ask("POST", REPORTS, DETAILS)
    if may_have_arrived:
        assert refused.status == 201
        assert only(server).confirmed is None
    else:
        assert (refused.status, refused.error) == (409, said)
        assert server.store.reports.all() == []


@pytest.mark.usefixtures("website")
@pytest_twisted.ensureDeferred
async def test_if_the_question_cannot_be_sent_nothing_waits_for_its_answer(
    server: Server, owner: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def send_letter(*_: object) -> None:
        meanwhile = await owner.ask("POST", REPORTS, DETAILS | {"every": "month"})
        assert meanwhile.status == 201
        raise MailFailed("mail.example.com:587: no response")

    monkeypatch.setattr(KeptMails, "send_letter", send_letter)
    assert (await owner.ask("POST", REPORTS, DETAILS)).status == 409
    assert server.store.reports.all() == []


@pytest.mark.usefixtures("website")
@pytest_twisted.ensureDeferred
async def test_a_website_is_in_a_limited_number_of_reports(server: Server, owner: Browser) -> None:
    await owner.ask("POST", REPORTS, DETAILS)
    made = only(server)
    for number in range(1, MAX_SUBSCRIPTIONS):
        await server.store.reports.add(f"{number}".encode(), made)
    refused = await owner.ask("POST", REPORTS, DETAILS)
    assert refused.status == 400
    assert refused.error == "websites: a website can be in 100 reports at most"
    # It counts once itself.
    one = f"{REPORTS}/{made.id}"
    assert (await owner.ask("PATCH", one, {"hour": 9})).status == 200
    await server.store.add_website("example.org", NOW)
    others = await owner.ask("POST", REPORTS, DETAILS | {"websites": ["example.org"]})
    assert others.status == 201
    assert isinstance(others.json, dict)
    full = await owner.ask("PATCH", f"{REPORTS}/{others.json['id']}", {"websites": ["example.com"]})
    assert full.error == "websites: a website can be in 100 reports at most"


@pytest_twisted.ensureDeferred
async def test_a_test_mail_is_sent_or_the_error_is_the_servers(
    server: Server, owner: Browser
) -> None:
    await owner.ask("PATCH", "/user", {"settings": {"language": "de"}})
    sent = await owner.ask("POST", "/user/test-mail", {"address": "ada@example.com"})
    assert sent.status == 204
    assert [mail[:2] for mail in kept(server).sent] == [("ada@example.com", "Testmail von medamad")]
    wrong = await owner.ask("POST", "/user/test-mail", {"address": "ada"})
    assert (wrong.status, wrong.error.startswith("address: ")) == (400, True)
    kept(server).error = MailFailed("mail.example.com:587: 535 wrong password")
    failed = await owner.ask("POST", "/user/test-mail", {"address": "ada@example.com"})
    assert (failed.status, failed.error) == (409, "mail.example.com:587: 535 wrong password")


@pytest_twisted.ensureDeferred
async def test_recipients_are_for_the_account_and_full_tokens_alone(
    server: Server, owner: Browser, visitor: Browser, website: str
) -> None:
    await owner.ask("POST", REPORTS, DETAILS)
    found = server.store.websites.by_hostname(website)
    assert found is not None
    for scope, numbers, status in (
        (Scope.FULL, None, 200),
        (Scope.FULL, [found.number], 403),
        (Scope.READ, None, 403),
        (Scope.SEND, None, 403),
    ):
        secret, key, token = make_token("t", scope, numbers, None, NOW)
        await server.store.tokens.add(key, token)
        headers = {"Authorization": f"Bearer {secret}"}
        answer = await visitor.ask("GET", REPORTS, headers=headers)
        assert answer.status == status
        assert (b"ada@example.com" in answer.body) is (status == 200)


@pytest.mark.usefixtures("website")
@pytest_twisted.ensureDeferred
async def test_they_are_deleted_with_the_account(server: Server, owner: Browser) -> None:
    await owner.ask("POST", REPORTS, DETAILS)
    assert (await owner.ask("DELETE", "/user")).status == 204
    assert server.store.reports.all() == []
