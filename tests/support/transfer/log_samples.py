"""Lines of access logs as web servers write them, and what is read of them."""

import json
from datetime import datetime
from ipaddress import ip_network
from pathlib import Path

from support.transfer import foreign_files as programs

from medamad.ingest.networks import Networks
from medamad.ingest.pipeline import Rules
from medamad.lookup.referrers import SpamHosts
from medamad.transfer.import_context import ImportTarget
from medamad.transfer.import_survey import ImportFile, survey_rows
from medamad.transfer.rows import HitRow, RejectedRow, ViewRow

FIREFOX = "Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0"
CRAWLER = "Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)"
RULES = Rules(blocked=Networks([ip_network("203.0.113.0/24")]), spam=SpamHosts(["spam.example"]))


def line(
    *,
    address: str = "192.0.2.1",
    time: str = "31/Jan/2026:23:30:00 -0100",
    request: str = "GET /a HTTP/1.1",
    status: int = 200,
    referrer: str = "-",
    agent: str = FIREFOX,
) -> str:
    return f'{address} - - [{time}] "{request}" {status} 2326 "{referrer}" "{agent}"\n'


def caddy(**changed: object) -> str:
    request = {
        "remote_ip": "10.0.0.1",
        "client_ip": "192.0.2.1",
        "proto": "HTTP/2.0",
        "method": "GET",
        "host": "www.example.com:443",
        "uri": "/docs/?utm_medium=mail",
        "headers": {
            "User-Agent": [FIREFOX],
            "Referer": ["https://example.com/"],
            "Accept-Language": ["de-AT,de;q=0.8"],
        },
    }
    record = {
        "level": "info",
        "ts": 1769902200.25,
        "logger": "http.log.access.log0",
        "msg": "handled request",
        "request": request | changed,
        "status": 200,
        "resp_headers": {"Content-Type": [changed.get("type", "text/html; charset=utf-8")]},
    }
    return json.dumps(record) + "\n"


def read(
    folder: Path, *contents: str | bytes, target: ImportTarget | None = None
) -> list[HitRow | RejectedRow]:
    files = [folder / f"access.log.{number}" for number in range(len(contents))]
    for file, content in zip(files, contents, strict=True):
        file.write_bytes(content.encode() if isinstance(content, str) else content)
    return programs.read(
        *files, target=target or ImportTarget("example.com", RULES), source="access-log"
    )


def view_of(folder: Path, content: str | bytes) -> ViewRow:
    (row,) = read(folder, content)
    assert isinstance(row, ViewRow)
    return row


def left_out(folder: Path, content: str, rules: Rules = RULES) -> tuple[int, dict[str, int]]:
    path = folder / "access.log"
    path.write_text(content)
    *_, found = survey_rows([ImportFile.of(path, "access-log", ImportTarget("example.com", rules))])
    return found.views, dict(found.skipped)


def ms(text: str) -> int:
    return round(datetime.fromisoformat(text).timestamp() * 1000)


def nginx(**changed: str) -> str:
    record = {
        "time_iso8601": "2026-01-31T23:30:00+01:00",
        "request": "GET /x HTTP/1.1",
        "status": "200",
        "http_user_agent": FIREFOX,
    }
    return json.dumps(record | changed) + "\n"
