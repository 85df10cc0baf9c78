import unicodedata
from ipaddress import ip_network
from pathlib import Path

import pytest
from attrs import evolve
from support.call_counts import calls_of
from support.web.client import headers_of

from medamad.domain.errors import BadRequest, Forbidden
from medamad.ingest.networks import Address, Networks, address_of
from medamad.lookup.referrers import Sources
from medamad.web.cors import check_change, check_host, cors_headers, may_monitor
from medamad.web.server.parser import RequestHeaders
from medamad.web.settings import WebSettings

SETTINGS = WebSettings(
    sources=Sources({}),
    data_dir=Path(),
    commit="",
    cors_origins=frozenset({"https://dash.example"}),
    trusted_proxies=Networks([ip_network("10.0.0.0/8")]),
)
PROXY = address_of("10.0.0.1")
CLIENT = address_of("203.0.113.9")
HOST = "stats.example.com"


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Sec-Fetch-Site": "same-origin"},
        {"Sec-Fetch-Site": "none"},
        {"Sec-Fetch-Site": "same-origin", "Origin": "https://stats.example.com"},
        {"Origin": "https://stats.example.com"},
        {"Origin": "http://stats.example.com"},
        {"Origin": "https://STATS.example.com"},
        {"Origin": "https://stats.example.com:443"},
        {"Origin": "https://stats.example.com", "Host": "stats.example.com:443"},
        {"Origin": "http://stats.example.com:8080", "Host": "stats.example.com:8080"},
        {"Origin": "http://[::1]:8080", "Host": "[::1]:8080"},
        {"Origin": "https://dash.example"},
        {"Origin": "https://dash.example", "Sec-Fetch-Site": "cross-site"},
        {"Origin": "https://dash.example", "Sec-Fetch-Site": "same-site"},
    ],
)
def test_a_change_from_our_own_page_is_allowed(headers: dict[str, str]) -> None:
    check_change(CLIENT, sent({"Host": HOST} | headers), SETTINGS)


@pytest.mark.parametrize(
    "headers",
    [
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"Sec-Fetch-Site": "Same-Origin"},
        {"Sec-Fetch-Site": ""},
        {"Sec-Fetch-Site": "cross-site", "Origin": "https://stats.example.com"},
        {"Origin": "null"},
        {"Origin": ""},
        {"Origin": "https://evil.example"},
        {"Origin": "https://stats.example.com.evil.example"},
        {"Origin": "https://stats.example.com:8443"},
        {"Origin": "http://stats.example.com:443"},
        {"Origin": "https://user@stats.example.com"},
        {"Origin": "ftp://stats.example.com"},
        {"Origin": "https://[stats.example.com"},
        {"Origin": "http://dash.example"},
        {"Origin": "https://stats.example.com", "Host": "other.example"},
        {"Origin": "https://a.example", "X-Forwarded-Host": "a.example"},
    ],
)
def test_a_change_from_another_origin_is_rejected(headers: dict[str, str]) -> None:
    with pytest.raises(Forbidden, match="another origin"):
        check_change(CLIENT, sent({"Host": HOST} | headers), SETTINGS)


def test_a_repeated_header_matches_nothing() -> None:
    headers = headers_of({"Host": [HOST], "Sec-Fetch-Site": ["none", "cross-site"]})
    with pytest.raises(Forbidden):
        check_change(CLIENT, headers, SETTINGS)


def test_the_forwarded_host_of_a_trusted_proxy_is_accepted() -> None:
    headers = sent({"Host": "inner", "X-Forwarded-Host": HOST, "Origin": f"https://{HOST}"})
    check_change(PROXY, headers, SETTINGS)
    with pytest.raises(Forbidden):
        check_change(CLIENT, headers, SETTINGS)


NAMED = evolve(SETTINGS, hostnames=frozenset({HOST, "xn--bcher-kva.example"}))


@pytest.mark.parametrize(
    "host",
    [
        *(HOST, "STATS.example.com", f"{HOST}:8443", f"{HOST}:", f"{HOST}."),
        "xn--bcher-kva.example",
        *("localhost", "localhost:8080", "127.0.0.1:8080", "203.0.113.1", "[::1]", "[::1]:8080"),
        *("[::ffff:127.0.0.1]:8080", "inner", "inner:8080", "Inner."),
    ],
)
def test_configured_and_local_hosts_are_accepted(host: str) -> None:
    check_host(CLIENT, sent({"Host": host}), NAMED)


@pytest.mark.parametrize(
    "host",
    [
        *("evil.example", f"{HOST}.evil.example", "example.com", f"x.{HOST}", "inner.example:8080"),
        *("localhost.evil.example", "127.0.0.1.evil.example", "1.2.3", f"{HOST}:80:80"),
        *("evil.example.", "EVIL.example"),
    ],
)
def test_other_hosts_are_rejected(host: str) -> None:
    with pytest.raises(BadRequest, match=r"^Host: "):
        check_host(CLIENT, sent({"Host": host}), NAMED)
    check_host(CLIENT, sent({"Host": host}), SETTINGS)


@pytest.mark.parametrize("headers", [{}, {"Host": ""}])
def test_a_request_without_a_hostname_is_accepted(headers: dict[str, str]) -> None:
    for peer in (PROXY, CLIENT, None):
        check_host(peer, sent(headers), NAMED)


def test_the_host_is_the_one_a_trusted_proxy_forwards() -> None:
    rewritten = sent({"Host": "inner.example:8080", "X-Forwarded-Host": HOST})
    check_host(PROXY, rewritten, NAMED)
    with pytest.raises(BadRequest):
        check_host(CLIENT, rewritten, NAMED)
    for host in (HOST, "inner:8080", ""):
        with pytest.raises(BadRequest):
            check_host(PROXY, sent({"Host": host, "X-Forwarded-Host": "evil.example"}), NAMED)


def test_configured_origins_may_read_with_the_cookie() -> None:
    assert dict(cors_headers(sent({"Origin": "https://dash.example"}), SETTINGS)) == {
        b"Vary": b"Origin",
        b"Access-Control-Allow-Origin": b"https://dash.example",
        b"Access-Control-Allow-Credentials": b"true",
        b"Access-Control-Expose-Headers": b"X-Api-Commit, X-Medamad-Partial",
    }
    assert cors_headers(sent({"Origin": "https://evil.example"}), SETTINGS) == (
        (b"Vary", b"Origin"),
    )
    assert cors_headers(sent({}), SETTINGS) == ((b"Vary", b"Origin"),)


def test_without_configured_origins_there_are_no_cors_headers() -> None:
    closed = evolve(SETTINGS, cors_origins=frozenset())
    assert cors_headers(sent({"Origin": "https://dash.example"}), closed) == ()


def sent(headers: dict[str, str]) -> RequestHeaders:
    return headers_of({name: [value] for name, value in headers.items()})


def test_a_long_origin_is_not_normalised() -> None:
    origin = b"https://" + b"\xbd" * 5_000
    headers = headers_of({b"Host": [HOST.encode()], b"Origin": [origin]})

    def check() -> None:
        with pytest.raises(Forbidden):
            check_change(CLIENT, headers, SETTINGS)

    assert calls_of(check, unicodedata.normalize) == 0


@pytest.mark.parametrize("peer", [CLIENT, PROXY])
def test_a_long_list_of_proxies_is_not_read_to_its_end(peer: Address) -> None:
    headers = headers_of({"X-Forwarded-For": ["192.0.2.1" + ", ::" * 5_000]})
    assert not may_monitor(peer, headers, SETTINGS)
    assert calls_of(lambda: may_monitor(peer, headers, SETTINGS)) < 2_000
