"""Several collectors, as real daemons: who is the primary, and what the others have of it."""

import http.client
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.clickhouse.daemon import Collectors, command, initialized, leave, send
from support.clickhouse.servers import Server
from support.daemon import PASSWORD, USERNAME, Client, Daemon, finished_fork, until

from medamad.cluster.peers import GREETED, Greeting, Peer
from medamad.daemon.collectors import DROPPED_NAME
from medamad.storage.shared_settings import Epoch

pytestmark = pytest.mark.daemon


@pytest.fixture
def three(server: Server, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Collectors]:
    found = Collectors.of([server], f"c_{request.node.name}"[:60], tmp_path)
    found.start()
    yield found
    found.stop()


@pytest.fixture(scope="module")
def lasting(server: Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Collectors]:
    """Collectors for tests that leave them as they were: running, and without a website."""
    found = Collectors.of([server], "c_lasting", tmp_path_factory.mktemp("lasting"))
    found.start()
    yield found
    found.stop()


def hostnames(client: Client) -> list[str] | None:
    """Return the hostnames of the websites, None where the login is not known yet."""
    answer = client.request("GET", "/api/websites")
    assert answer.status in {200, 401}, answer
    return None if answer.status == 401 else [website["hostname"] for website in answer.json]


def of(daemon: Daemon, client: Client) -> Client:
    """Return a client of another daemon with the same login."""
    return Client(daemon.port, client.cookie)


def report(daemon: Daemon) -> dict[str, object]:
    found: dict[str, object] = json.loads(command(daemon, "status", "--json")[1])
    return found


def test_the_others_follow_the_primary(three: Collectors) -> None:
    client = three[1].client()
    client.add_website("example.com")
    others = [of(three[number], client) for number in (2, 3)]
    until(lambda: all(hostnames(each) == ["example.com"] for each in others))
    goal = {"name": "Order", "path": "/order"}
    path = "/api/websites/example.com/goals"
    assert client.request("POST", path, goal).status == 201
    until(lambda: all(len(each.get(path)) == 1 for each in others))
    # Each has its own numbers, and the website the same one on all.
    for number in (1, 2, 3):
        send(three[number], number)
    summary = "/api/website/example.com/summary"
    for each in (client, *others):
        until(lambda each=each: each.get(summary)["current"]["visitors"] == 3)
    found = three.client().query(
        f"SELECT DISTINCT website, toUInt16(bitShiftRight(view, 48)) AS collector"
        f" FROM {three.client().table('views')} ORDER BY collector"
    )
    assert (found["website"].tolist(), found["collector"].tolist()) == ([1, 1, 1], [1, 2, 3])
    assert client.request("DELETE", "/api/websites/example.com").status == 204
    until(lambda: all(hostnames(each) == [] for each in others))
    body = {"e": "load", "b": "late", "u": "https://example.com/", "p": True, "q": True}
    assert others[0].request("POST", "/api/event/hit", body).status == 404


def test_others_refuse_changes_and_say_whose_they_are(lasting: Collectors) -> None:
    client = lasting[1].client()
    client.add_website("example.com")
    other = of(lasting[2], client)
    until(lambda: hostnames(other) == ["example.com"])
    expected = "logins and changes are for the primary, collector 1"
    login = {"username": USERNAME, "password": PASSWORD}
    changes = (
        ("POST", "/api/websites", {"hostname": "b.example"}),
        ("DELETE", "/api/websites/example.com", None),
        ("PATCH", "/api/user", {"settings": {"language": "de"}}),
        ("POST", "/api/auth/login", login),
    )
    for method, path, body in changes:
        answer = other.request(method, path, body)
        assert answer.status == 503, (method, path)
        assert answer.json["error"]["message"] == expected
        assert int(answer.headers["retry-after"]) > 0
    goal = ["goal", "add", "example.com", "Order", "--path", "/order"]
    done = finished_fork([*goal, "--data", str(lasting[2].data)])
    assert done.returncode == 1
    assert "settings are changed on the primary, collector 1" in done.stderr
    done = finished_fork([*goal, "--data", str(lasting[1].data)])
    assert done.returncode == 0
    until(lambda: len(other.get("/api/websites/example.com/goals")) == 1)
    assert hostnames(client) == ["example.com"]
    assert client.request("DELETE", "/api/websites/example.com").status == 204


def test_others_go_on_while_the_primary_is_down(three: Collectors) -> None:
    client = three[1].client()
    client.add_website("example.com")
    other = of(three[3], client)
    until(lambda: hostnames(other) == ["example.com"])
    three[1].kill()
    until(lambda: report(three[3])["others"]["1"] != "")  # type: ignore[index]
    answer = other.request("POST", "/api/websites", {"hostname": "b.example"})
    assert answer.status == 503
    assert answer.json["error"]["message"].endswith("which cannot be reached")
    send(three[3], 1)
    until(lambda: other.get("/api/website/example.com/summary")["current"]["visitors"] == 1)
    degraded = Client(three[3].port).get("/health")["degraded"]
    assert degraded == "collector 1 cannot be reached"
    # Also after a start without the primary.
    three[3].stop()
    three[3].start()
    assert hostnames(other) == ["example.com"]
    status, printed, _ = command(three[3], "status")
    assert status == 1
    assert "collector    3; the primary is 1\ncollector 1  http" in printed
    three[1].start()
    until(lambda: "degraded" not in Client(three[3].port).get("/health"))
    assert "collector 1  can be reached" in command(three[3], "status")[1]


def test_a_collector_needs_the_secret(lasting: Collectors) -> None:
    for secret in ("", "Bearer ", "Bearer wrong", f"Basic {lasting.secret}"):
        connection = http.client.HTTPConnection("127.0.0.1", lasting[1].port)
        connection.request("POST", "/cluster", b"\x90", {"Authorization": secret})
        answer = connection.getresponse()
        assert answer.status == 403
        assert b"account" not in answer.read()
        connection.close()
    (lasting[3].folder / "secret").write_text("another secret, of thirty-two characters\n")
    lasting[3].stop()
    lasting[3].start()
    until(lambda: "collectors that have the secret" in report(lasting[3])["degraded"])  # type: ignore[operator]
    assert lasting.secret not in "".join(lasting[number].log for number in (1, 2, 3))
    (lasting[3].folder / "secret").write_text(lasting.secret)
    lasting[3].stop()
    lasting[3].start()
    until(lambda: report(lasting[3])["degraded"] == "")


def joining(three: Collectors, number: int, folder: Path) -> Daemon:
    """Return a daemon that has not joined yet, as a further collector."""
    daemon = Daemon(folder)
    daemon.configuration = three.configured(number, {number: daemon.base})
    folder.mkdir()
    (folder / "secret").write_text(three.secret)
    return daemon


def test_a_number_is_never_given_twice(lasting: Collectors, tmp_path: Path) -> None:
    until(lambda: not report(lasting[2])["waiting"])
    until(lambda: len(lasting.numbers()) == 3)
    late = joining(lasting, 2, tmp_path / "late")
    status, _, error = command(late, "join")
    assert status == 1
    assert "cluster.collector: 2 is the number of another data directory" in error
    # The directory is still empty.
    late.configuration = lasting.configured(4, {4: late.base})
    status, printed, error = command(late, "join")
    assert (status, error) == (0, "")
    assert printed.endswith("of collector 4 now; the primary is collector 1. Start the daemon.\n")
    status, _, error = command(late, "join")
    assert status == 1
    assert "begins with an empty data directory" in error
    late.configuration = lasting.configured(5, {5: late.base})
    late.folder.joinpath("medamad.toml").write_text(late.configuration)
    run = ["run", "--config", str(late.folder / "medamad.toml"), "--data", str(late.data)]
    done = finished_fork([*run, "--listen", str(late.port)])
    assert done.returncode == 1
    assert "cluster.collector: this data directory has joined as 4" in done.stderr


@pytest.mark.parametrize("is_of_cluster", [False, True])
def test_what_has_a_copy_of_the_settings_does_not_start_alone(
    lasting: Collectors, tmp_path: Path, *, is_of_cluster: bool
) -> None:
    number = 6 + is_of_cluster
    late = joining(lasting, number, tmp_path / "late")
    assert command(late, "join")[0] == 0
    section, _, _ = late.configuration.partition("secret_file")
    file = late.folder / "medamad.toml"
    file.write_text(section if is_of_cluster else "", "utf-8")
    run = ["run", "--config", str(file), "--data", str(late.data), "--listen", str(late.port)]
    done = finished_fork(run)
    assert done.returncode == 1
    assert "cluster.collectors: expected the addresses of all collectors" in done.stderr
    assert f"that of collector {number}, and has a copy of the settings of collector 1" in (
        done.stderr
    )


def test_joining_says_what_is_wrong(lasting: Collectors, tmp_path: Path) -> None:
    late = joining(lasting, 4, tmp_path / "late")
    (late.folder / "secret").write_text("another secret, of thirty-two characters\n")
    status, _, error = command(late, "join")
    assert status == 1
    assert "collector 1 cannot be reached: " in error
    assert "this is for collectors that have the secret of cluster.secret_file" in error
    (late.folder / "secret").write_text("short")
    status, _, error = command(late, "join")
    assert status == 78
    assert "cluster.secret_file: expected at least 32 characters" in error
    late.configuration = late.configuration.partition("[cluster.collectors]")[0]
    status, _, error = command(late, "join")
    assert status == 78
    assert "cluster.collectors: no other collector is named" in error
    late.configuration = lasting.configured(4, dict.fromkeys(range(1, 5), late.base))
    (late.folder / "secret").write_text(lasting.secret)
    status, _, error = command(late, "join")
    assert status == 1
    assert "Connection refused" in error
    late.configuration = lasting.configured(1, {1: late.base})
    status, _, error = command(late, "join")
    assert status == 1
    assert "cluster.collector: 1 is the number of the primary" in error
    assert not (late.data / "store.mdb").exists()


def test_a_collector_that_has_not_joined_is_named(three: Collectors, tmp_path: Path) -> None:
    three[3].stop()
    alone = Daemon(tmp_path / "alone", configuration=three[3].configuration, port=three[3].port)
    alone.folder.mkdir()
    (alone.folder / "secret").write_text(three.secret)
    alone.start()
    client = three[1].client()
    client.add_website("example.com")
    expected = "has not joined the cluster of this one: run medamad cluster join"
    until(lambda: expected in command(alone, "status")[1])
    assert hostnames(alone.client()) == []
    until(lambda: expected in command(three[1], "status")[1])
    assert report(three[1])["primary"] == 1
    alone.stop()


def promoted(daemon: Daemon) -> str:
    """Make a collector the primary; return the warnings."""
    status, printed, warning = command(daemon, "promote")
    assert status == 0, warning
    assert printed.endswith("is the primary now.\n")
    return warning


def test_another_collector_becomes_the_primary(three: Collectors) -> None:
    client = three[1].client()
    client.add_website("example.com")
    # What has been changed just before is not lost.
    assert promoted(three[2]) == ""
    now = of(three[2], client)
    assert hostnames(now) == ["example.com"]
    now.add_website("b.example")
    others = [of(three[number], client) for number in (1, 3)]
    until(lambda: all(hostnames(each) == ["b.example", "example.com"] for each in others))
    answer = client.request("POST", "/api/websites", {"hostname": "c.example"})
    assert answer.status == 503
    assert "the primary, collector 2" in answer.json["error"]["message"]
    assert command(three[1], "status")[0] == 0
    assert not list(three[1].data.glob(DROPPED_NAME.format("*")))
    status, _, error = command(three[2], "promote")
    assert (status, "collector 2 is the primary already" in error) == (1, True)
    # And back, after a start.
    three[2].stop()
    three[2].start()
    assert promoted(three[1]) == ""
    client.add_website("c.example")
    until(lambda: hostnames(now) == ["b.example", "c.example", "example.com"])


def test_changes_made_during_a_split_are_kept_in_a_file_and_dropped(three: Collectors) -> None:
    client = three[1].client()
    client.add_website("example.com")
    others = [of(three[number], client) for number in (2, 3)]
    until(lambda: all(hostnames(each) == ["example.com"] for each in others))
    three[1].kill()
    assert "collector 1 could not be asked for its last changes: http" in promoted(three[3])
    others[1].add_website("new.example")
    until(lambda: hostnames(others[0]) == ["example.com", "new.example"])
    # The former primary comes back, and reaches nobody.
    for number in (2, 3):
        three[number].stop()
    three[1].start()
    client.add_website("lost.example")
    body = {"e": "load", "b": "lost", "u": "https://lost.example/", "p": True, "q": True}
    assert client.request("POST", "/api/event/hit", body).status == 204
    stored = three.client()
    views = f"SELECT website FROM {stored.table('views')}"
    until(lambda: len(stored.query(views).get("website", ())) == 1)
    for number in (2, 3):
        three[number].start()
    until(lambda: hostnames(client) == ["example.com", "new.example"])
    status, printed, _ = command(three[1], "status")
    (file,) = three[1].data.glob(DROPPED_NAME.format("*"))
    assert status == 1
    assert f"make the changes in {file} again, and delete it" in printed
    assert file.stat().st_mode & 0o777 == 0o600
    kept = json.loads(file.read_text())
    assert [
        json.loads(change["value"])["hostname"]
        for change in kept
        if change["database"] == "websites"
    ] == ["lost.example"]
    file.unlink()
    until(lambda: command(three[1], "status")[0] == 0)
    # No website has the number of one that was dropped.
    summary = "/api/website/new.example/summary"
    assert client.get(summary)["current"]["visitors"] == 0


def test_what_was_removed_during_a_split_is_in_the_file(three: Collectors) -> None:
    client = three[1].client()
    made = client.request("POST", "/api/user/tokens", {"name": "leaked", "scope": "full"})
    assert made.status == 201
    tokens = client.get("/api/user/tokens")
    until(lambda: of(three[3], client).request("GET", "/api/user/tokens").json == tokens)
    three[1].kill()
    promoted(three[3])
    for number in (2, 3):
        three[number].stop()
    three[1].start()
    assert client.request("DELETE", f"/api/user/tokens/{made.json['id']}").status == 204
    for number in (2, 3):
        three[number].start()
    until(lambda: client.get("/api/user/tokens") == tokens)
    (file,) = three[1].data.glob(DROPPED_NAME.format("*"))
    (change,) = json.loads(file.read_text())
    assert (change["value"], json.loads(change["there"])["name"]) == (None, "leaked")


def test_a_collector_that_was_away_begins_with_what_was_set_meanwhile(three: Collectors) -> None:
    client = three[1].client()
    client.add_website("example.com")
    others = [of(three[number], client) for number in (2, 3)]
    until(lambda: all(hostnames(each) == ["example.com"] for each in others))
    three[1].kill()
    promoted(three[2])
    others[0].add_website("new.example")
    three[1].start()
    promoted(three[1])
    assert hostnames(client) == ["example.com", "new.example"]
    until(lambda: all(hostnames(each) == hostnames(client) for each in others))
    until(lambda: {report(three[number])["primary"] for number in (1, 2, 3)} == {1})


def test_a_promotion_without_others_is_refused(server: Server, tmp_path: Path) -> None:
    text = f'[cluster]\nurls = ["{server.url}"]\ndatabase = "alone"\n'
    daemon = Daemon(tmp_path / "daemon", configuration=text)
    initialized(daemon)
    daemon.start()
    status, _, error = command(daemon, "promote")
    assert (status, "[cluster.collectors] names none" in error) == (1, True)
    daemon.stop()


def test_a_collector_says_for_how_long_its_hits_wait(three: Collectors) -> None:
    client = three[1].client()
    client.add_website("example.com")
    until(lambda: hostnames(of(three[2], client)) == ["example.com"])
    three[2].stop()
    url = three.servers[0].url
    three[2].configuration = three[2].configuration.replace(url, "http://127.0.0.1:1")
    three[2].start()
    peer = Peer(number=2, url=three[2].base, secret=three.secret)

    def lag_s() -> float:
        return peer.ask(Greeting(1, Epoch(), b""), GREETED).lag_s

    assert lag_s() == 0
    send(three[2], 1)
    until(lambda: lag_s() > 0)


GPTBOT = "Mozilla/5.0 (compatible; GPTBot/1.2; +https://openai.com/gptbot)"


def followed(daemon: Daemon, *agents: str) -> None:
    """Count lines of a log on a collector: a page load of each day by each program."""
    log = daemon.folder / "access.log"
    log.write_text(
        "".join(
            f'192.0.2.1 - - [{day:02}/Jan/2025:12:00:00 +0000] "GET /page HTTP/1.1" 200 5 "-"'
            f' "{agent}"\n'
            for day in (1, 2)
            for agent in agents
        )
    )
    done = finished_fork(
        ["follow", str(log), "--once", "--website", "example.com", "--data", str(daemon.data)]
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_what_each_collector_has_counted_apart_is_in_the_answers_of_all(
    lasting: Collectors,
) -> None:
    client = lasting[1].client()
    client.add_website("example.com")
    everybody = [client, of(lasting[2], client), of(lasting[3], client)]
    until(lambda: all(hostnames(each) == ["example.com"] for each in everybody))
    body = {"e": "load", "b": "bot", "u": "https://example.com/", "p": True, "q": True}
    for number, each in enumerate(everybody, 1):
        for _ in range(number):
            answer = each.request("POST", "/api/event/hit", body, {"User-Agent": GPTBOT})
            assert (answer.status, answer.headers["x-medamad-ignored"]) == (204, "bot")
    firefox = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"
    followed(lasting[1], firefox, "curl/8.5.0")
    followed(lasting[2], firefox, firefox, "curl/8.5.0")
    path = "/api/website/example.com/"

    def robots(each: Client) -> dict[str, int]:
        return {row["name"]: row["requests"] for row in each.get(f"{path}robots")}

    for each in everybody:
        until(lambda each=each: robots(each) == {"GPTBot": 6, "curl": 4})
        assert [(row["reason"], row["hits"]) for row in each.get(f"{path}ignored")] == [("bot", 6)]
        # The first day of a log may have begun late.
        found = each.get(f"{path}blind-spot")
        assert (found["first"], found["loads"], found["robots"]) == ("2025-01-02", 5, 2)
    for number, each in enumerate(everybody, 1):
        for hostname in ("unknown.example", f"unknown{number}.example"):
            load = body | {"u": f"https://{hostname}/"}
            assert each.request("POST", "/api/event/hit", load).status == 404
    for number, each in enumerate(everybody, 1):
        usage = each.get("/api/user/usage")
        assert usage["collectors"] == {"this": number, "silent": []}
        refused = {row["reason"]: row["hits"] for row in usage["hits"]["refused"]}
        assert (refused["bot"], refused["unknown-website"]) == (6, 6)
        unknown = {row["hostname"]: row["hits"] for row in usage["hits"]["unknown_hostnames"]}
        assert unknown == {"unknown.example": 3} | {f"unknown{n}.example": 1 for n in (1, 2, 3)}
    lasting[2].kill()
    for name in ("robots", "ignored", "blind-spot"):
        answer = everybody[2].request("GET", path + name)
        assert (answer.status, answer.headers["retry-after"]) == (503, "10")
        expected = "collector 2 does not answer at the moment, and has a part of this"
        assert answer.json["error"]["message"] == expected
    assert everybody[2].request("GET", f"{path}summary").status == 200
    usage = everybody[2].get("/api/user/usage")
    assert usage["collectors"] == {"this": 3, "silent": [2]}
    assert {row["reason"]: row["hits"] for row in usage["hits"]["refused"]}["bot"] == 4
    lasting[2].start()
    until(lambda: everybody[2].request("GET", f"{path}robots").status == 200)
    assert robots(everybody[2]) == {"GPTBot": 6, "curl": 4}
    assert client.request("DELETE", "/api/websites/example.com").status == 204


def test_a_proxy_that_scatters_the_hits_of_visitors_is_noticed(lasting: Collectors) -> None:
    client = lasting[1].client()
    client.add_website("example.com")
    until(lambda: hostnames(of(lasting[2], client)) == ["example.com"])
    expected = "let the proxy keep each address on one collector"
    send(lasting[1], 1)
    # Some may go astray: addresses change.
    for duration_ms in range(1, 121):
        leave(lasting[1 if duration_ms % 2 else 2], 1, duration_ms)
    assert expected not in command(lasting[2], "status")[1]
    for duration_ms in range(121, 181):
        leave(lasting[2], 1, duration_ms)
    assert expected in command(lasting[2], "status")[1].replace("\n", " ")
    assert expected not in command(lasting[1], "status")[1]
    assert client.request("DELETE", "/api/websites/example.com").status == 204


def test_hits_of_all_collectors_are_imported_once(lasting: Collectors, tmp_path: Path) -> None:
    client = lasting[1].client()
    client.add_website("example.com")
    until(lambda: all(hostnames(of(lasting[each], client)) == ["example.com"] for each in (2, 3)))
    event = {"e": "custom", "g": "example.com", "d": {"plan": "pro"}}
    for number, daemon in lasting.daemons.items():
        send(daemon, number)
        assert Client(daemon.port).request("POST", "/api/event/hit", event).status == 204
    pages, properties = (f"/api/website/example.com/{name}" for name in ("pages", "properties"))
    until(lambda: len(client.get(pages)) == 3)
    until(lambda: [row["events"] for row in client.get(properties)] == [3])
    before = client.get(pages), client.get(properties)
    files = []
    for what in ("views", "events"):
        files.append(str(tmp_path / f"{what}.csv"))
        given = ["export", "example.com", "--what", what, "--output", files[-1]]
        done = finished_fork([*given, "--data", str(lasting[2].data)])
        assert done.returncode == 0, done
    where = ["--website", "example.com", "--data", str(lasting[1].data)]
    done = finished_fork(["import", *files, *where])
    assert "nothing was imported: 6 hits already imported or counted" in done.stderr
    assert (client.get(pages), client.get(properties)) == before
    assert client.request("DELETE", "/api/websites/example.com").status == 204
