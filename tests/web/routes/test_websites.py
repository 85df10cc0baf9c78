import pytest
import pytest_twisted
from attrs import evolve
from support.web.client import Browser
from support.web.daemon_in_memory import Server

WEBSITES = "/websites"
LONGEST = ".".join(["a" * 63] * 3 + ["a" * 61])


@pytest.mark.parametrize("prefix", ["", "/api"])
@pytest_twisted.ensureDeferred
async def test_without_websites_the_list_is_empty(owner: Browser, prefix: str) -> None:
    answer = await owner.ask("GET", prefix + WEBSITES)
    assert (answer.status, answer.json) == (200, [])


@pytest.mark.parametrize(
    ("sent", "kept"),
    [
        ("example.com", "example.com"),
        ("WWW.Example.COM.", "www.example.com"),
        ("localhost", "localhost"),
        ("bücher.example", "xn--bcher-kva.example"),
        (LONGEST, LONGEST),
    ],
)
@pytest_twisted.ensureDeferred
async def test_a_website_is_registered(owner: Browser, sent: str, kept: str) -> None:
    answer = await owner.ask("POST", WEBSITES, {"hostname": sent})
    assert (answer.status, answer.json) == (201, {"hostname": kept})
    assert answer.header("X-Api-Commit") == "c0ffee1"
    answer = await owner.ask("GET", f"/api/websites/{kept}")
    assert (answer.status, answer.json) == (200, {"hostname": kept})


@pytest_twisted.ensureDeferred
async def test_the_list_is_in_order_of_hostname(owner: Browser) -> None:
    for hostname in ("b.example", "a.example", "c.example"):
        await owner.ask("POST", WEBSITES, {"hostname": hostname})
    answer = await owner.ask("GET", WEBSITES)
    assert answer.json == [
        {"hostname": "a.example"},
        {"hostname": "b.example"},
        {"hostname": "c.example"},
    ]


@pytest_twisted.ensureDeferred
async def test_the_list_counts_the_visitors_of_a_day(
    server: Server, owner: Browser, website: str
) -> None:
    load = {"e": "load", "u": f"http://{website}/", "q": True}
    for beacon, is_first in (("b1", True), ("b2", False), ("b3", True)):
        await owner.ask("POST", "/event/hit", load | {"b": beacon, "p": is_first})
    for text in ("true", "1", "True"):
        answer = await owner.ask("GET", f"{WEBSITES}?summary={text}")
        assert answer.json == [{"hostname": website, "summary": {"visitors": 2}}]
    answer = await owner.ask("GET", f"{WEBSITES}?summary=0")
    assert answer.json == [{"hostname": website}]
    server.now += 86_401
    answer = await owner.ask("GET", f"{WEBSITES}?summary=true")
    assert answer.json == [{"hostname": website, "summary": {"visitors": 0}}]


@pytest_twisted.ensureDeferred
async def test_the_list_counts_the_visits_of_a_day_where_visitors_are_not_counted(
    server: Server, owner: Browser, website: str
) -> None:
    server.pipeline.rules = evolve(server.pipeline.rules, has_visitors=False)
    load = {"e": "load", "u": f"http://{website}/", "p": True, "q": True, "w": 1440}
    for beacon in ("b1", "b2"):
        sent = await owner.ask("POST", "/event/hit", load | {"b": beacon})
        assert sent.status == 204
        server.now += 3_600
    answer = await owner.ask("GET", f"{WEBSITES}?summary=true")
    assert answer.json == [{"hostname": website, "summary": {"visitors": 0, "visits": 2}}]
    answer = await owner.ask("GET", f"/website/{website}/summary?visits=true")
    assert answer.json["visitors_counted"] is False
    assert "visitors_counted" not in (await owner.ask("GET", f"/website/{website}/summary")).json
    server.now += 86_401
    answer = await owner.ask("GET", f"{WEBSITES}?summary=true")
    assert answer.json == [{"hostname": website, "summary": {"visitors": 0, "visits": 0}}]


@pytest_twisted.ensureDeferred
async def test_summary_must_be_a_boolean(owner: Browser) -> None:
    answer = await owner.ask("GET", f"{WEBSITES}?summary=maybe")
    assert answer.status == 400
    assert answer.error.startswith("summary: ")


MALFORMED = [
    ({}, "hostname"),
    ({"hostname": 1}, "hostname"),
    ({"hostname": None}, "hostname"),
    ({"hostname": ""}, "hostname"),
    ({"hostname": "https://example.com"}, "hostname"),
    ({"hostname": "example.com:80"}, "hostname"),
    ({"hostname": "example.com/"}, "hostname"),
    ({"hostname": "-a.example"}, "hostname"),
    ({"hostname": "a..b"}, "hostname"),
    ({"hostname": "a\u0000b"}, "hostname"),
    ({"hostname": LONGEST + "a"}, "hostname"),
    ({"hostname": "192.0.2.1"}, "hostname"),
    ([], "body"),
    ("example.com", "body"),
]


@pytest.mark.parametrize(("body", "field"), MALFORMED)
@pytest_twisted.ensureDeferred
async def test_a_malformed_registration_is_400(owner: Browser, body: object, field: str) -> None:
    answer = await owner.ask("POST", WEBSITES, body)
    assert answer.status == 400
    assert answer.error.startswith(f"{field}: ")
    assert (await owner.ask("GET", WEBSITES)).json == []


@pytest_twisted.ensureDeferred
async def test_a_registered_hostname_is_409(owner: Browser, website: str) -> None:
    for hostname in (website, website.upper(), f"{website}."):
        answer = await owner.ask("POST", WEBSITES, {"hostname": hostname})
        assert answer.status == 409
        assert website in answer.error


@pytest_twisted.ensureDeferred
async def test_a_rename_keeps_the_hits(owner: Browser, website: str) -> None:
    load = {"e": "load", "b": "b1", "u": f"http://{website}/", "p": True, "q": True}
    await owner.ask("POST", "/event/hit", load)
    answer = await owner.ask("PATCH", f"/websites/{website}", {"hostname": "New.Example"})
    assert (answer.status, answer.json) == (200, {"hostname": "new.example"})
    assert (await owner.ask("GET", f"/websites/{website}")).status == 404
    answer = await owner.ask("GET", "/website/new.example/pages?summary=1")
    assert answer.json == [{"path": "/", "visitors": 1, "visitors_percentage": 1.0}]


@pytest_twisted.ensureDeferred
async def test_a_rename_to_its_own_name_is_200(owner: Browser, website: str) -> None:
    answer = await owner.ask("PATCH", f"/websites/{website}", {"hostname": website.upper()})
    assert (answer.status, answer.json) == (200, {"hostname": website})


@pytest_twisted.ensureDeferred
async def test_a_rename_to_another_websites_name_is_400(owner: Browser, website: str) -> None:
    await owner.ask("POST", WEBSITES, {"hostname": "other.example"})
    answer = await owner.ask("PATCH", f"/websites/{website}", {"hostname": "other.example"})
    assert answer.status == 400
    assert answer.error.startswith("hostname: ")


@pytest.mark.parametrize(("body", "field"), MALFORMED)
@pytest_twisted.ensureDeferred
async def test_a_malformed_rename_is_400(
    owner: Browser, website: str, body: object, field: str
) -> None:
    answer = await owner.ask("PATCH", f"/websites/{website}", body)
    assert answer.status == 400
    assert answer.error.startswith(f"{field}: ")


@pytest_twisted.ensureDeferred
async def test_a_deleted_website_is_gone_with_its_hits(owner: Browser, website: str) -> None:
    load = {"e": "load", "b": "b1", "u": f"http://{website}/", "p": True, "q": True}
    await owner.ask("POST", "/event/hit", load)
    answer = await owner.ask("DELETE", f"/websites/{website}")
    assert (answer.status, answer.body) == (204, b"")
    assert answer.header("X-Api-Commit") == "c0ffee1"
    assert (await owner.ask("GET", WEBSITES)).json == []
    assert (await owner.ask("DELETE", f"/websites/{website}")).status == 404
    assert (await owner.ask("POST", "/event/hit", load | {"b": "b2"})).status == 404
    assert (await owner.ask("POST", WEBSITES, {"hostname": website})).status == 201
    assert (await owner.ask("GET", f"/website/{website}/pages")).json == []


@pytest.mark.parametrize("method", ["GET", "PATCH", "DELETE"])
@pytest.mark.parametrize(
    ("hostname", "status"),
    [
        ("unknown.example", 404),
        ("www.example.com", 404),
        ("EXAMPLE.org.", 404),
        ("a" * 254, 400),
        (LONGEST + "a", 400),
        ("a%20b", 400),
        ("a%2Fb", 400),
        ("%00", 400),
        ("%zz", 400),
        ("%ff", 400),
        ("-", 400),
        ("192.0.2.1", 400),
    ],
)
@pytest.mark.usefixtures("website")
@pytest_twisted.ensureDeferred
async def test_an_invalid_hostname_is_rejected(
    owner: Browser, method: str, hostname: str, status: int
) -> None:
    body = {"hostname": "new.example"} if method == "PATCH" else None
    answer = await owner.ask(method, f"/websites/{hostname}", body)
    assert answer.status == status
    assert answer.error.startswith(
        "path: " if "%zz" in hostname or "%ff" in hostname else "hostname: "
    )
