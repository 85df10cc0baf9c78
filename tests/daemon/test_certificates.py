"""TLS certificates, as the real daemon reads them."""

import ssl
import subprocess
import sys
from pathlib import Path

import pytest
from support.certificates import Authority
from support.daemon import RUN, Daemon, configure, finished_fork, free_port, pinged, until

pytestmark = pytest.mark.daemon


def test_a_certificate_is_renewed_by_a_reload(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    port = free_port()
    daemon = Daemon(tmp_path, arguments=("--listen", authority.endpoint(port)))
    daemon.start()
    try:
        kept = authority.connection(port)
        # A connection with a request may stay open longer.
        kept.request("GET", "/api/event/ping")
        kept.getresponse().read()
        assert pinged(authority.connection(port)) == 200
        authority.renew()
        with pytest.raises(ssl.SSLCertVerificationError):
            pinged(authority.connection(port))
        configure(daemon, "")
        until(lambda: "the configuration was reloaded" in daemon.log)
        assert pinged(authority.connection(port)) == 200
        assert pinged(kept) == 200
        (tmp_path / "cert.pem").write_text("no certificate", "utf-8")
        configure(daemon, "")
        until(lambda: "the configuration was not changed" in daemon.log)
        assert pinged(authority.connection(port)) == 200
    finally:
        assert daemon.stop() == 0
    assert "a certificate was not replaced" not in daemon.log, "an error is logged once"


def test_a_certificate_is_renewed_even_if_the_configuration_is_rejected(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    port = free_port()
    arguments = ("--listen", authority.endpoint(port))
    daemon = Daemon(tmp_path, arguments, configuration="[log]\nlevel = 'info'")
    daemon.start()
    try:
        for number, refused in enumerate(("[[[", "[log]\nlevel = 7\n"), 1):
            authority.renew()
            configure(daemon, refused)
            until(lambda: daemon.log.count("the configuration was not changed") == number)  # noqa: B023
            assert pinged(authority.connection(port)) == 200
        (tmp_path / "cert.pem").write_text("no certificate", "utf-8")
        configure(daemon, "[[[")
        until(lambda: "a certificate was not replaced" in daemon.log)
        assert pinged(authority.connection(port)) == 200
        assert "was reloaded" not in daemon.log
    finally:
        assert daemon.stop() == 0


def test_a_certificate_is_renewed_even_if_another_is_unreadable(tmp_path: Path) -> None:
    first, second = (Authority(tmp_path / name) for name in ("first", "second"))
    ports = free_port(), free_port()
    texts = [each.endpoint(port) for each, port in zip((second, first), ports, strict=True)]
    daemon = Daemon(tmp_path, [word for text in texts for word in ("--listen", text)])
    daemon.start()
    try:
        first.renew()
        (second.folder / "cert.pem").write_text("no certificate", "utf-8")
        configure(daemon, "")
        until(lambda: "the configuration was not changed: " in daemon.log)
        for each, port in zip((second, first), ports, strict=True):
            assert pinged(each.connection(port)) == 200
    finally:
        assert daemon.stop() == 0


def test_a_mismatched_key_prevents_the_start(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    key = (tmp_path / "privkey.pem").read_bytes()
    authority.renew()
    (tmp_path / "privkey.pem").write_bytes(key)
    listen = ("--listen", authority.endpoint(free_port()))
    ran = finished_fork(["run", "--data", str(tmp_path / "data"), *listen])
    assert ran.returncode == 78, ran.stderr
    assert "server.listen: ssl:" in ran.stderr


def has_openssl(daemon: Daemon) -> bool:
    return "cryptography" in Path(f"/proc/{daemon.pid}/maps").read_text("utf-8")


def test_openssl_is_loaded_for_an_endpoint_that_speaks_tls(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    daemon = Daemon(tmp_path, command=RUN)
    daemon.start()
    try:
        assert daemon.client().get("/user")["username"]
        assert not has_openssl(daemon)
    finally:
        assert daemon.stop() == 0
    port = free_port()
    daemon.arguments = ("--listen", authority.endpoint(port))
    daemon.start()
    try:
        assert pinged(authority.connection(port)) == 200
        assert has_openssl(daemon)
    finally:
        assert daemon.stop() == 0


PROGRAM = """
import sys
from pathlib import Path
from medamad.cli.run import without_openssl
from medamad.config.schema import Config
with without_openssl():
    from twisted.internet import reactor
    from medamad.daemon.listen import configured_endpoints
(endpoint,) = configured_endpoints(Config().with_overrides(Path(), [sys.argv[1]]), reactor)
print(endpoint.certificate.options.getContext())
"""


def test_a_certificate_can_be_read_once_openssl_was_left_out(tmp_path: Path) -> None:
    """A reload checks an endpoint that is opened at the next start."""
    endpoint = Authority(tmp_path).endpoint(8443)
    command = [sys.executable, "-c", PROGRAM, endpoint]
    ran = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "OpenSSL.SSL.Context" in ran.stdout
