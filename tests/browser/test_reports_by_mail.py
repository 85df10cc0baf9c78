"""Reports by mail: added in the settings, confirmed and ended by the pages that mails link to."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import expect
from support.browser.dashboard import Dashboard
from support.daemon import Daemon, running
from support.mail_server import PASSWORD, USER, MailServer, answer, mail_server

pytestmark = pytest.mark.browser

Make = Callable[..., Dashboard]


@pytest.fixture
def mails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[MailServer]:
    with mail_server(tmp_path / "mail") as server:
        monkeypatch.setenv("SSL_CERT_FILE", str(server.trusted))
        yield server


@pytest.fixture
def daemon(tmp_path: Path, mails: MailServer) -> Iterator[Daemon]:
    (tmp_path / "password").write_text(PASSWORD, "utf-8")
    configuration = f"""
[server]
public_url = "https://stats.example.com"
[mail]
host = "localhost"
port = {mails.port}
user = "{USER}"
password_file = "{tmp_path}/password"
from = "stats@example.org"
"""
    with running(tmp_path, configuration=configuration) as started:
        yield started


def test_a_report_is_added_confirmed_changed_and_ended(
    daemon: Daemon, mails: MailServer, dashboard_of: Make
) -> None:
    owner = daemon.client()
    for hostname in ("a.example", "b.example"):
        owner.add_website(hostname)
    page = dashboard_of(owner).open("settings/reports")
    test = page.get_by_role("region", name="Send test email")
    mails.received.on_recipient = answer("550 5.1.1 no such user here")
    test.get_by_label("Email address").fill("ada@example.com")
    test.get_by_role("button").click()
    expect(test.get_by_text("550 5.1.1 no such user here")).to_be_visible()
    mails.received.on_recipient = answer("250 OK")
    test.get_by_role("button").click()
    expect(test.get_by_text("The mail server has accepted the email.")).to_be_visible()
    form = page.get_by_role("region", name="Add report")
    form.get_by_label("Email address").fill("ada@example.com")
    form.get_by_label("Websites").select_option(["a.example", "b.example"])
    form.get_by_label("Day").select_option(label="Friday")
    form.get_by_role("button").click()
    expect(form.get_by_text("ada@example.com has been asked to confirm.")).to_be_visible()
    listed = page.get_by_role("region", name="Reports", exact=True).get_by_role("listitem")
    expect(listed).to_contain_text(["a.example, b.example"])
    expect(listed).to_contain_text(["Not confirmed yet"])
    text = mails.received.parsed[-1].get_content()
    (path,) = re.findall(r"https://stats\.example\.com(/mail/\S+)/confirm", text)
    mail = page.context.new_page()
    mail.goto(f"{daemon.base}{path}/confirm")
    mail.get_by_role("button", name="Confirm").click()
    expect(mail.get_by_text("This address is confirmed.")).to_be_visible()
    page.reload()
    expect(listed).to_contain_text(["Friday"])
    expect(listed.get_by_text("Not confirmed yet")).to_have_count(0)
    listed.get_by_role("button", name="Edit").click()
    dialog = page.get_by_role("dialog", name="Edit: ada@example.com")
    dialog.get_by_label("Websites").select_option(["b.example"])
    dialog.get_by_label("How often").select_option("Every month")
    dialog.get_by_label("Language").select_option("Deutsch")
    dialog.get_by_role("button", name="Save").click()
    expect(listed).to_contain_text(["Every month · Day 1 of the month"])
    expect(listed).to_contain_text(["b.example · Deutsch"])
    mail.goto(f"{daemon.base}{path}/unsubscribe")
    mail.get_by_role("button", name="Abbestellen").click()
    expect(mail.get_by_text("Es wird nichts gesendet.")).to_be_visible()
    page.reload()
    expect(page.get_by_text("No reports yet.")).to_be_visible()
