"""Where the service listens; continues from test_boot.py."""

from pathlib import Path

from support.boot.machine import EDITED, NEEDED, Machine, asking
from support.certificates import Authority

ROOT = Path(__file__).parents[2]
SANDBOX = (
    *("Capability", "Lock", "Memory", "NoNew", "Private", "Protect", "Remove", "Restrict"),
    "SystemCall",
)
"""The beginnings of the unit's lines that sandbox the daemon."""
TLS_CLIENT = """
from pathlib import Path
from twisted.internet.task import react
from twisted.internet.ssl import Certificate
from twisted.web.client import Agent, BrowserLikePolicyForHTTPS

async def main(reactor):
    authority = Certificate.loadPEM(Path("/srv/authority.pem").read_bytes())
    agent = Agent(reactor, BrowserLikePolicyForHTTPS(authority))
    response = await agent.request(b"GET", b"https://localhost:8443/api/event/ping")
    assert response.code == 200, response.code

react(main)
"""

pytestmark = NEEDED


def test_the_printed_steps_change_the_ports(machine: Machine) -> None:
    machine.run("sed", "-i", 's/^#listen = .*/listen = "tcp:9090"/', EDITED)
    printed = machine.run("medamad", "service", "install").splitlines()
    steps = [line.partition(": ")[2] for line in printed if ": systemctl " in line]
    assert [step.split()[1] for step in steps] == ["stop", "enable", "restart"]
    for step in steps:
        machine.run(*step.split())
    assert machine.run("python3", "-c", asking("/pulse.js", 9090)) == "200"
    assert machine.shown("Listen", "medamad.socket") == "0.0.0.0:9090 (Stream)"
    for unit in ("medamad.service", "medamad.socket"):
        assert machine.shown("FragmentPath", unit).endswith(f"/lib/systemd/system/{unit}")


PING = b"GET /api/event/ping HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"


def pinging(family: str, address: object) -> tuple[str, ...]:
    """Return a command that sends a request as a user other than root.

    It prints the first line of the response.
    """
    connect = f"s = k.socket(k.{family}); s.settimeout(60); s.connect({address!r});"
    send = f"s.sendall({PING!r}); print(s.makefile().readline())"
    return (
        *("setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups"),
        *("python3", "-c", f"import socket as k; {connect} {send}"),
    )


def test_it_listens_on_ipv4_ipv6_and_a_unix_socket(machine: Machine) -> None:
    listen(machine, '["tcp:8080", "tcp6:8080", "unix:/run/medamad/http.sock"]')
    for restarted in (False, True):
        if restarted:
            machine.run("systemctl", "restart", "medamad")
        for family, address in (
            ("AF_INET", ("127.0.0.1", 8080)),
            ("AF_INET6", ("::1", 8080)),
            ("AF_UNIX", "/run/medamad/http.sock"),
        ):
            assert machine.run(*pinging(family, address)) == "HTTP/1.1 200 OK"
    assert machine.shown("Listen", "medamad.socket") == (
        "0.0.0.0:8080 (Stream)\n[::]:8080 (Stream)"
    )
    assert machine.ask("hit") == 204


def listen(machine: Machine, places: str) -> None:
    machine.run("sed", "-i", f"s|^#*listen = .*|listen = {places}|", EDITED)
    machine.run("medamad", "service", "install", "--now")


def test_a_unix_socket_is_opened_at_once_too(machine: Machine) -> None:
    listen(machine, '["tcp:8080", "unix:/run/medamad/other.sock"]')
    ping = pinging("AF_UNIX", "/run/medamad/other.sock")
    assert machine.run(*ping) == "HTTP/1.1 200 OK"
    assert machine.ask("hit") == 204


GIVE_ADDRESS = (
    "import socket as k, struct as s, fcntl;"
    "address = s.pack('HH4s8x', k.AF_INET, 0, k.inet_aton('192.0.2.7'));"
    "fcntl.ioctl(k.socket(), 0x8916, s.pack('16s16s8x', b'lo:1', address))"  # SIOCSIFADDR
)


def test_an_address_may_appear_after_the_service_started(machine: Machine) -> None:
    listen(machine, '"tcp:8080:interface=192.0.2.7"')
    assert machine.shown("ActiveState") == "active"
    machine.run("python3", "-c", GIVE_ADDRESS)
    assert machine.run(*pinging("AF_INET", ("192.0.2.7", 8080))) == "HTTP/1.1 200 OK"


def test_tls_works_with_a_certificate_passed_to_the_service(machine: Machine) -> None:
    lineage = machine.root / "etc/letsencrypt/live/stats.example.com"
    lineage.parent.mkdir(parents=True)
    authority = Authority(lineage, "localhost")
    hook = (ROOT / "etc/certbot-deploy").read_text("utf-8")
    owner = machine.run("stat", "--format=%u:%g", f"/proc/{machine.shown('MainPID')}")
    for act in ("stop", "start"):
        machine.run("systemctl", act, "medamad.socket", "medamad.service")
        machine.run("sh", "-c", hook)
        for name in ("privkey", "cert", "chain"):
            path = f"/var/lib/private/medamad/tls/{name}.pem"
            assert machine.run("stat", "--format=%u:%g %a", path) == f"{owner} 400"
            assert machine.run("cat", path) == (lineage / f"{name}.pem").read_text("utf-8").strip()
    assert machine.shown("ActiveState") == "active"
    (machine.root / "etc/hosts").write_text("127.0.0.1 localhost\n", "utf-8")
    authority.authority.cert_pem.write_to_path(machine.root / "srv/authority.pem")
    (machine.root / "srv/tls_client.py").write_text(TLS_CLIENT, "utf-8")
    files = "privateKey={0}/privkey.pem:certKey={0}/cert.pem:extraCertChain={0}/chain.pem"
    listen(machine, f'["tcp:8080", "ssl:8443:{files.format("/var/lib/medamad/tls")}"]')
    fetch = (
        "import ssl, urllib.request as r;"
        "trusted = ssl.create_default_context(cafile='/srv/authority.pem');"
        "print(r.urlopen('https://localhost:8443/api/event/ping', context=trusted).status)"
    )
    assert machine.run("python3", "-c", fetch) == "200"
    # The daemon may call others: what a client of Twisted does, in the sandbox of the service.
    unit = machine.run("cat", "/usr/lib/systemd/system/medamad.service").splitlines()
    sandbox = [line for line in unit[unit.index("[Service]") :] if line.startswith(SANDBOX)]
    command = "ExecStart=/usr/lib/medamad/bin/python3 /srv/tls_client.py"
    (machine.root / "etc/systemd/system/client.service").write_text(
        "\n".join(["[Service]", "Type=oneshot", "DynamicUser=yes", command, *sandbox]), "utf-8"
    )
    machine.run("systemctl", "daemon-reload")
    machine.run("systemctl", "start", "client")
    assert machine.ask("hit") == 204
