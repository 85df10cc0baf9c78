"""Sockets opened by systemd, with and without TLS."""

import http.client
import os
import signal
import socket
import ssl
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from support.certificates import Authority
from support.daemon import (
    PATIENCE_S,
    Client,
    Daemon,
    configure,
    finished,
    free_port,
    pinged,
    until,
)
from support.forked_process import ForkedProcess, fork

pytestmark = pytest.mark.daemon

INHERIT = """
import os
os.environ |= {
    "LISTEN_PID": str(os.getpid()), "LISTEN_FDS": "1", "LISTEN_FDNAMES": "medamad.socket"
}
"""
STARTED = f"""{INHERIT}
import sys
os.dup2(int(sys.argv[1]), 3)
os.execv(sys.executable, [sys.executable, "-m", "medamad", *sys.argv[2:]])
"""
FORKED = f"""{INHERIT}
from twisted.internet import endpoints
from twisted.python.systemd import ListenFDs
endpoints._SystemdParser._sddaemon = ListenFDs.fromEnvironment()  # as when it is imported
"""


@contextmanager
def activated(
    listening: socket.socket, folder: Path, *listen: str, is_forked: bool = True
) -> Iterator[Path]:
    """Run a daemon with an inherited socket; return the path of its log."""
    arguments = [text for place in listen for text in ("--listen", place)]
    log = folder / "log.txt"
    with Path(os.devnull).open("rb") as nothing, log.open("wb") as output:
        command = ["run", "--data", str(folder / "data"), *arguments]
        process: ForkedProcess | subprocess.Popen[bytes]
        if is_forked:
            process = fork(command, (nothing, output, output, listening), before=FORKED)
        else:
            process = subprocess.Popen(
                [sys.executable, "-c", STARTED, str(listening.fileno()), *command],
                pass_fds=[listening.fileno()],
                stderr=output,
            )
    try:
        yield log
    finally:
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=PATIENCE_S) == 0


@pytest.mark.parametrize("family", [socket.AF_INET, socket.AF_INET6])
def test_systemd_sockets_are_used(tmp_path: Path, family: socket.AddressFamily) -> None:
    host = {socket.AF_INET: "127.0.0.1", socket.AF_INET6: "::1"}[family]
    with socket.create_server((host, 0), family=family) as listening:
        port = listening.getsockname()[1]
        with activated(listening, tmp_path, is_forked=False) as log:
            assert pinged(http.client.HTTPConnection(host, port, timeout=PATIENCE_S)) == 200
            named = f"{f'[{host}]' if ':' in host else host}:{port} (from systemd)"
            assert f"listening    {named};" in finished("status", tmp_path / "data").stdout
    assert f"listening on {named}\n" in log.read_text("utf-8")
    assert "listening on tcp:8080" not in log.read_text("utf-8")


def test_other_endpoints_are_listened_on_too(tmp_path: Path) -> None:
    other = free_port()
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
        places = f"tcp:{port}:interface=127.0.0.1", f"tcp:{other}:interface=127.0.0.1"
        with activated(listening, tmp_path, *places) as log:
            for each in (port, other):
                assert (
                    pinged(http.client.HTTPConnection("127.0.0.1", each, timeout=PATIENCE_S)) == 200
                )
    assert f"listening on 127.0.0.1:{port} (from systemd)" in log.read_text("utf-8")
    assert f"listening on tcp:{other}" in log.read_text("utf-8")


@pytest.mark.parametrize("is_both_named", [False, True])
@pytest.mark.parametrize(
    ("host", "is_of_both"), [("127.0.0.1", False), ("::", False), ("::", True)]
)
def test_both_families_are_listened_on_whichever_systemd_opened(
    tmp_path: Path, host: str, *, is_of_both: bool, is_both_named: bool
) -> None:
    family, hosts = socket.AF_INET, ["127.0.0.1", "::1"]
    if ":" in host:
        family, hosts = socket.AF_INET6, hosts[::-1]
    port = free_port()
    with socket.create_server((host, port), family=family, dualstack_ipv6=is_of_both) as listening:
        of_ipv4, of_ipv6 = f"tcp:{port}:interface=127.0.0.1", f"tcp6:{port}"
        other = of_ipv4 if ":" in host else of_ipv6
        with activated(listening, tmp_path, *([of_ipv4, of_ipv6] if is_both_named else [other])):
            for each in hosts:
                assert pinged(http.client.HTTPConnection(each, port, timeout=PATIENCE_S)) == 200


def test_an_abstract_systemd_socket_is_used_beside_another(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind("")  # has Linux pick an abstract address
        listening.listen()
        path = tmp_path / "http.sock"
        with activated(listening, tmp_path, f"unix:{path}"):
            for address in (listening.getsockname(), str(path)):
                with socket.socket(socket.AF_UNIX) as asking:
                    asking.settimeout(PATIENCE_S)
                    asking.connect(address)
                    asking.sendall(b"GET /api/event/ping HTTP/1.1\r\nHost: localhost\r\n\r\n")
                    assert asking.recv(4_096).startswith(b"HTTP/1.1 200 ")


def test_ipv6_is_listened_on_beside_ipv4_and_for_both(tmp_path: Path) -> None:
    one, other, both = free_port(), free_port(), free_port()
    places = f"tcp:{one}:interface=127.0.0.1", f"tcp:{other}", f"tcp6:{one}", f"tcp6:{other}"
    arguments = [text for place in (*places, f"tcp6:{both}") for text in ("--listen", place)]
    daemon = Daemon(tmp_path, arguments)
    daemon.start()
    try:
        for port in (one, other, both):
            for host in ("127.0.0.1", "::1"):
                assert pinged(http.client.HTTPConnection(host, port, timeout=PATIENCE_S)) == 200
    finally:
        assert daemon.stop() == 0


def test_endpoints_of_one_port_are_distinguished_by_address(tmp_path: Path) -> None:
    port = free_port()
    authorities = {host: Authority(tmp_path / host, host) for host in ("127.0.0.2", "127.0.0.3")}
    texts = [each.endpoint(port, host) for host, each in authorities.items()]
    texts.append(f"tcp:{port}:interface=127.0.0.1")

    def answer_each() -> None:
        for host, each in authorities.items():
            assert pinged(each.connection(port, host)) == 200
        assert pinged(http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE_S)) == 200

    daemon = Daemon(tmp_path, [word for text in texts for word in ("--listen", text)])
    daemon.start()
    try:
        answer_each()
        for each in authorities.values():
            each.renew()
        configure(daemon, "")
        until(lambda: "the configuration was reloaded" in daemon.log)
        answer_each()
    finally:
        assert daemon.stop() == 0
    with (
        socket.create_server(("127.0.0.2", port)) as listening,
        activated(listening, tmp_path, *reversed(texts)),
    ):
        answer_each()


def test_a_systemd_socket_speaks_tls_if_its_port_does(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
        with activated(listening, tmp_path, authority.endpoint(port)) as log:
            assert pinged(authority.connection(port)) == 200
    assert f"listening on 127.0.0.1:{port} (from systemd)" in log.read_text("utf-8")


def test_a_dual_stack_socket_speaks_tls_if_the_ipv4_endpoint_does(
    tmp_path: Path,
) -> None:
    authority = Authority(tmp_path)
    with socket.create_server(("::", 0), family=socket.AF_INET6, dualstack_ipv6=True) as listening:
        port = listening.getsockname()[1]
        places = authority.endpoint(port, "0.0.0.0"), f"tcp6:{port}:interface=\\:\\:1"  # noqa: S104
        with activated(listening, tmp_path, *places):
            assert pinged(authority.connection(port)) == 200


def test_clients_without_tls_do_no_harm(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    port = free_port()
    daemon = Daemon(tmp_path, arguments=("--listen", authority.endpoint(port)))
    daemon.start()
    try:
        with pytest.raises((http.client.HTTPException, OSError)):
            Client(port).request("GET", "/api/event/ping")
        assert pinged(authority.connection(port)) == 200
        assert "Traceback" not in daemon.log
    finally:
        assert daemon.stop() == 0


WHOLE = b"HEAD /event/ping HTTP/1.1\r\nHost: localhost\r\n\r\n"


def test_limits_apply_over_tls(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    port = free_port()
    limits = "[limits]\nmax_connections = 5\n"
    daemon = Daemon(tmp_path, ("--listen", authority.endpoint(port)), limits)
    daemon.start()

    def begun(request: bytes) -> ssl.SSLSocket:
        connection = authority.connection(port)
        connection.connect()
        connection.sock.sendall(request)
        return connection.sock

    held = []
    try:
        for _ in range(5):
            held.append(begun(WHOLE + b"GET /event/ping HTTP/1.1\r\n"))
            # What was sent with it has been read, too.
            assert held[-1].recv(4_096).startswith(b"HTTP/1.1 200 ")
        # It takes the place of a request that is slow to come.
        further = socket.create_connection(("127.0.0.1", port), timeout=PATIENCE_S)
        with further, held[0], suppress(ConnectionResetError, ssl.SSLEOFError):
            assert held[0].recv(1) == b""
        for one in held[1:]:
            one.sendall(b"Host: localhost\r\n\r\n")
            assert one.recv(4_096).startswith(b"HTTP/1.1 200 ")
            one.close()
        for _ in range(3):
            with begun(b"nonsense\r\n\r\n") as refused:
                assert refused.recv(4_096).startswith(b"HTTP/1.1 400 ")
                while refused.recv(4_096):
                    pass
        assert pinged(authority.connection(port)) == 200
        assert "Traceback" not in daemon.log
    finally:
        for one in held:
            one.close()
        assert daemon.stop() == 0


def test_a_stop_does_not_wait_for_open_connections(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    port = free_port()
    daemon = Daemon(tmp_path, ("--listen", authority.endpoint(port)))
    daemon.start()
    held = [authority.connection(port) for _ in range(4)]
    for one in held:
        one.connect()
    for one in held[1:]:
        one.sock.sendall(WHOLE)
    held[1].sock.recv(4_096)
    held[2].sock.recv(4_096)
    held[2].sock.sendall(WHOLE[:-1])
    assert daemon.stop() == 0
    assert "connections were aborted" not in daemon.log
    # What had arrived is answered, and the client receives the response and the close.
    answer = held[3].response_class(held[3].sock, method="HEAD")
    answer.begin()
    assert answer.status == 200
    for one in held:
        assert one.sock.recv(4_096) == b""
        one.close()
