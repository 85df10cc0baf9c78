"""A whole daemon sends to a webhook, signed with the key in its data directory."""

import hashlib
import hmac
import json
import ssl
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import TypeAlias

import pytest
from support.certificates import Authority
from support.daemon import RUN, configure, running, until

pytestmark = pytest.mark.daemon

Received: TypeAlias = list[tuple[dict[str, str], bytes]]
"""Headers and bodies."""


@contextmanager
def receiver(
    authority: Authority | None = None,
) -> Iterator[tuple[int, list[tuple[dict[str, str], bytes]]]]:
    """Run a server that keeps what it receives."""
    received: Received = []

    class Keeping(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            received.append((dict(self.headers), body))
            self.send_response(204)
            self.end_headers()

        def log_message(self, *_words: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Keeping) as server:
        if authority is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            folder = authority.folder
            context.load_cert_chain(folder / "fullchain.pem", folder / "privkey.pem")
            server.socket = context.wrap_socket(server.socket, server_side=True)
        thread = Thread(target=server.serve_forever)
        thread.start()
        yield server.server_port, received
        server.shutdown()
        thread.join()


def test_tls_is_verified_by_the_certificates_of_the_system(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    authority = Authority(tmp_path / "tls")
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "tls" / "chain.pem"))
    configuration = '[alerts]\nwebhook_networks = ["127.0.0.1"]\n'
    with (
        receiver(authority) as (port, received),
        # Started, not forked: this process has imported OpenSSL.
        running(tmp_path, configuration=configuration, command=RUN) as daemon,
    ):
        client = daemon.client()

        def failure_with(url: str) -> str | None:
            made = {"kind": "backup", "url": url, "format": "ntfy"}
            alert = client.request("POST", "/api/user/alerts", made).json
            return client.request("POST", f"/api/user/alerts/{alert['id']}/test").json["failure"]

        assert failure_with(f"https://localhost:{port}/") is None
        text = b"This is a test. At the moment, the alert has nothing to report."
        assert [body for _, body in received] == [text]
        # The certificate is for the name alone.
        assert "127.0.0.1" in str(failure_with(f"https://127.0.0.1:{port}/"))
        assert len(received) == 1


def test_a_webhook_of_this_machine_is_reached_if_the_configuration_allows_it(
    tmp_path: Path,
) -> None:
    with receiver() as (port, received), running(tmp_path) as daemon:
        client, url = daemon.client(), f"http://localhost:{port}/hook"
        made = {"kind": "disk", "threshold": 1_000_000, "url": url}
        alert = client.request("POST", "/api/user/alerts", made).json
        test = f"/api/user/alerts/{alert['id']}/test"
        assert client.request("POST", test).json["failure"] == (
            "localhost is an address of this machine or of its networks:"
            " [alerts] webhook_networks in the configuration can allow it"
        )
        assert received == []
        configure(daemon, '[alerts]\nwebhook_networks = ["127.0.0.1"]\n')
        until(lambda: "was reloaded" in daemon.log)
        tried = client.request("POST", test).json
        assert (tried["firing"], tried["failure"]) == (True, None)
        key_file = daemon.data / "webhook.key"
        assert key_file.stat().st_mode & 0o777 == 0o600
        key = key_file.read_bytes().strip()
        secret = hmac.new(key, url.encode(), hashlib.sha256).hexdigest()
        assert alert["secret"] == secret
        ((headers, body),) = received
        signed = headers["X-Medamad-Timestamp"].encode() + b"." + body
        expected = hmac.new(secret.encode(), signed, hashlib.sha256).hexdigest()
        assert headers["X-Medamad-Signature"] == f"sha256={expected}"
        assert json.loads(body)["text"] == tried["text"]
        assert url not in daemon.log
