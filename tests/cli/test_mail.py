from email.message import EmailMessage
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from support.daemon import RUN, configure, finished, running, until
from support.mail_server import PASSWORD, USER, MailServer, answer, mail_server

mail = partial(finished, "mail")
pytestmark = pytest.mark.daemon
TO = "owner@example.com"


def configuration(server: MailServer, folder: Path) -> str:
    (folder / "password").write_text(f"{PASSWORD}\n", "utf-8")
    return f"""
[mail]
host = "localhost"
port = {server.port}
user = "{USER}"
password_file = "{folder}/password"
from = "stats@example.org"
"""


def test_a_test_mail_is_sent_in_the_accounts_language(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with mail_server(tmp_path / "mail") as server:
        monkeypatch.setenv("SSL_CERT_FILE", str(server.trusted))
        with running(tmp_path, configuration=configuration(server, tmp_path)) as daemon:
            daemon.client().request("PATCH", "/api/user", {"settings": {"language": "de"}})
            sent = mail(daemon.data, "test", TO)
            assert (sent.returncode, sent.stderr) == (0, "")
            assert sent.stdout == "The mail server has accepted the mail.\n"
            (arrived,) = server.received.parsed
            assert isinstance(arrived, EmailMessage)
            assert (arrived["To"], arrived["Subject"]) == (TO, "Testmail von medamad")
            server.received.on_recipient = answer("550 5.1.1 no such user here")
            refused = mail(daemon.data, "test", TO)
            assert refused.returncode == 1
            said = f"localhost:{server.port}: 550 5.1.1 no such user here"
            assert refused.stderr == f"medamad: {said}\n"
            wrong = mail(daemon.data, "test", "nobody")
            assert wrong.stderr.startswith("medamad: address: expected an address")
            assert TO not in daemon.log
            assert PASSWORD not in daemon.log


@pytest.mark.filterwarnings("ignore:Requiring AUTH while not requiring TLS")
@pytest.mark.parametrize("tls", ["starttls", "implicit"])
def test_a_daemon_that_was_started_without_tls_sends_by_tls(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tls: Any
) -> None:
    """Started, not forked: this process has imported OpenSSL."""
    with mail_server(tmp_path / "mail", tls) as server:
        monkeypatch.setenv("SSL_CERT_FILE", str(server.trusted))
        with_tls = configuration(server, tmp_path) + f'tls = "{tls}"\n'
        with running(tmp_path, configuration=with_tls, command=RUN) as daemon:
            sent = mail(daemon.data, "test", TO)
            assert (sent.returncode, sent.stderr) == (0, "")
            assert server.received.recipients == [TO]
            assert "Traceback" not in daemon.log


def test_a_reload_applies_the_mail_settings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with mail_server(tmp_path / "mail") as server, running(tmp_path) as daemon:
        failed = mail(daemon.data, "test", TO)
        assert failed.returncode == 1
        assert "set host and from in the section [mail]" in failed.stderr
        # Its certificate is not trusted here, so what is new is what refuses it.
        monkeypatch.delenv("SSL_CERT_FILE", raising=False)
        configure(daemon, configuration(server, tmp_path))
        until(lambda: "the configuration was reloaded" in daemon.log)
        failed = mail(daemon.data, "test", TO)
        assert failed.stderr.startswith(f"medamad: localhost:{server.port}: ")
        assert "certificate" in failed.stderr


def test_without_a_daemon_nothing_is_sent(tmp_path: Path) -> None:
    failed = mail(tmp_path / "none", "test", TO)
    assert failed.returncode == 1
    assert "no daemon runs on it" in failed.stderr
