"""Nothing on disk or in the log identifies a visitor."""

from ipaddress import ip_address
from pathlib import Path

import pytest
from support.daemon import PASSWORD, Daemon, running

pytestmark = pytest.mark.daemon

FOUR, SIX = "203.0.113.77", "2001:db8:77:1:a11:ce55:0:7"
ELSEWHERE = "198.51.100.77"
AGENT = "Mozilla/5.0 (X11; Linux x86_64; rv:133.0) Gecko/20100101 Firefox/133.0"
QUERY, COOKIE, BODY = "query-of-a-visitor", "cookie-of-a-visitor", "body-of-a-visitor"
BEHIND_A_PROXY = '[server]\ntrusted_proxies = ["127.0.0.1"]\n'


def hit(daemon: Daemon, address: str, beacon: str) -> str | None:
    """Send a hit from an address through a proxy; return why it was ignored."""
    url = f"https://example.com/?{QUERY}"
    body = {"e": "load", "b": beacon, "u": url, "p": True, "q": True}
    headers = {"X-Forwarded-For": f"1.2.3.4, {address}", "User-Agent": AGENT}
    answer = daemon.client().request("POST", f"/api/event/hit?{QUERY}", body, headers)
    assert answer.status == 204
    return answer.headers.get("x-medamad-ignored")


def test_nothing_stored_or_logged_identifies_a_sender(tmp_path: Path) -> None:
    with running(tmp_path, configuration=BEHIND_A_PROXY) as daemon:
        owner = daemon.client()
        owner.add_website("example.com")
        for number, address in enumerate((FOUR, SIX)):
            headers = {"X-Forwarded-For": address, "User-Agent": AGENT, "Cookie": f"a={COOKIE}"}
            assert hit(daemon, address, f"b{number}") is None
            for method, path, body, status in (
                ("POST", "/api/event/hit", {"e": BODY}, 400),
                ("POST", "/api/auth/login", {"username": BODY, "password": BODY}, 401),
                ("GET", f"/api/user?{QUERY}", None, 401),
                ("GET", f"/nowhere?{QUERY}", None, 404),
                ("PUT", f"/api/user?{QUERY}", BODY, 405),
                ("GET", f"/api/event/%zz?{QUERY}", None, 400),
            ):
                assert owner.request(method, path, body, headers).status == status, path
        assert owner.get("/api/website/example.com/pages")[0]["path"] == "/"
        token = (owner.cookie or "").partition("=")[2]
        assert len(token) == 43
    kept = {file: file.read_bytes() for file in daemon.data.rglob("*") if file.is_file()}
    assert b"example.com" in b"".join(kept.values())
    secrets = (FOUR, SIX, AGENT, QUERY, COOKIE, BODY, PASSWORD, token)
    for number in (FOUR, SIX):
        for file, content in kept.items():
            assert ip_address(number).packed not in content, file
    for text in secrets:
        assert text not in daemon.log
        for file, content in kept.items():
            assert text.encode() not in content, (file, text)


def test_a_blocked_network_stays_blocked_after_a_restart(tmp_path: Path) -> None:
    with running(tmp_path, configuration=BEHIND_A_PROXY) as daemon:
        daemon.client().add_website("example.com")
        assert hit(daemon, FOUR, "b0") is None
        (tmp_path / "blocked.txt").write_text("203.0.113.0/24\n2001:db8:77::/48\n", "utf-8")
        daemon.stop()
        daemon.start()
        found = [hit(daemon, address, address) for address in (FOUR, SIX, ELSEWHERE)]
        assert found == ["blocked", "blocked", None]
        (ignored,) = daemon.client().get("/api/website/example.com/ignored")
        assert (ignored["reason"], ignored["hits"]) == ("blocked", 2)
