"""The example proxy configurations for several collectors, on ports of this machine."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

_EXAMPLES: Final = Path(__file__).parents[2] / "etc" / "proxies"

Command = Callable[[Path, int, Sequence[int]], Sequence[str]]
"""Writes the files of a proxy into a folder, and returns how it is run: on a port, before others.

The folder has its certificate. It takes the address of a client from before the connection, or, of
Caddy, from a header.
"""


def changed(name: str, changes: Mapping[str, str], ports: Sequence[int]) -> str:
    """Return an example with each passage replaced, and the addresses of the collectors."""
    text = (_EXAMPLES / name).read_text("utf-8")
    sooner = " fail_timeout=1s" if name.startswith("nginx") else ""
    addresses = {
        f"192.0.2.{n}:8080": f"127.0.0.1:{port}{sooner}" for n, port in enumerate(ports, 1)
    }
    for old, new in {**changes, **addresses}.items():
        assert old in text, old
        text = text.replace(old, new)
    return text


def nginx_of(folder: Path, port: int, ports: Sequence[int]) -> Sequence[str]:
    changes = {
        "listen 443 ssl;": f"listen 127.0.0.1:{port} ssl proxy_protocol;"
        " set_real_ip_from 127.0.0.1; real_ip_header proxy_protocol;",
        "    listen [::]:443 ssl;\n": "",
        "stats.example.com;": "localhost;",
        "/etc/letsencrypt/live/stats.example.com": str(folder),
    }
    kept = " ".join(
        f"{kind}_temp_path {folder}/{kind};"
        for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    example = changed("nginx-collectors.conf", changes, ports)
    (folder / "nginx.conf").write_text(
        f"daemon off; pid {folder}/nginx.pid; error_log {folder}/error.log;\n"
        f"events {{}}\nhttp {{ access_log off; {kept}\n{example}\n}}\n",
        "utf-8",
    )
    return ("nginx", "-e", f"{folder}/error.log", "-p", str(folder), "-c", f"{folder}/nginx.conf")


def haproxy_of(folder: Path, port: int, ports: Sequence[int]) -> Sequence[str]:
    changes = {
        "bind :443,:::443 v6only ssl": f"bind 127.0.0.1:{port} accept-proxy ssl",
        "/etc/haproxy/stats.pem": f"{folder}/stats.pem",
    }
    files = [(folder / f"{name}.pem").read_text() for name in ("fullchain", "privkey")]
    (folder / "stats.pem").write_text("".join(files))
    file = folder / "haproxy.cfg"
    file.write_text(changed("haproxy-collectors.cfg", changes, ports), "utf-8")
    return ("haproxy", "-f", str(file))


def caddy_of(folder: Path, port: int, ports: Sequence[int]) -> Sequence[str]:
    changes = {
        "stats.example.com {": f"https://localhost:{port} {{\n"
        f"\ttls {folder}/fullchain.pem {folder}/privkey.pem",
        # This Caddy reads no address from before a connection, as the other two do.
        "{remote_host}": "{header.X-Address}",
    }
    example = changed("Caddyfile-collectors", changes, ports)
    (folder / "Caddyfile").write_text("{\n\tadmin off\n\tauto_https off\n}\n" + example, "utf-8")
    home = ("env", f"XDG_DATA_HOME={folder}/caddy", f"XDG_CONFIG_HOME={folder}/caddy")
    return (*home, "caddy", "run", "--adapter", "caddyfile", "--config", f"{folder}/Caddyfile")


COMMANDS: Final[Mapping[str, Command]] = {
    "nginx": nginx_of,
    "haproxy": haproxy_of,
    "caddy": caddy_of,
}
