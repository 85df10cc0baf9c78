"""The daemon without its sockets."""

from collections.abc import Callable, Sequence
from ipaddress import ip_network
from pathlib import Path
from typing import Any

import msgspec
from attrs import define, evolve, field, frozen
from support.fast_hashing import HASHER
from support.web.client import HOST, Browser
from twisted.internet import reactor
from twisted.internet.defer import Deferred, execute
from twisted.internet.task import Clock

from medamad.accounts.accounts import Accounts
from medamad.accounts.credentials import digest, new_token
from medamad.daemon.alert_watch import AlertWatch
from medamad.domain.accounts import Account, Login
from medamad.domain.alerts import NotDelivered
from medamad.domain.hits import Hit, View
from medamad.ingest.networks import Networks
from medamad.ingest.pipeline import Pipeline, Rules
from medamad.ingest.robot_counts import PendingRobots
from medamad.ingest.write_queue import Append, WriteQueue
from medamad.lookup.referrers import Sources, SpamHosts
from medamad.mail.mailer import Mailer
from medamad.mail.settings import MailFailed, MailSettings
from medamad.storage.compaction.planner import Sizes
from medamad.storage.settings import StoreSettings
from medamad.storage.startup import start_store
from medamad.storage.store import Store
from medamad.storage.wal.log import Outcome
from medamad.web.app import make_site
from medamad.web.server.site import Site
from medamad.web.settings import WebSettings

NOW = 1_750_000_000
"""2025-06-15T15:06:40Z, a Sunday."""
USERNAME, PASSWORD = "ada", "correct horse"
HASH = HASHER.hash(PASSWORD)
SOURCES = Sources({"google.com": "Google"})


MAIL = MailSettings(
    host="mail.example.com", sender="stats@example.com", url="https://stats.example.com"
)


@define(eq=False)
class KeptMails(Mailer):
    """Keeps mails instead of sending them, or refuses them with an error."""

    sent: list[tuple[str, str, str]] = field(factory=list, init=False)
    error: MailFailed | None = field(default=None, init=False)

    async def send(
        self, to: str, subject: str, text: str, _html: str = "", **_headers: object
    ) -> None:
        self.settings.check()
        if self.error is not None:
            raise self.error
        self.sent.append((to, subject, text))


def at_once(question: Callable[[], Any], client: object = ()) -> Deferred[Any]:
    """Run a query in this thread."""
    assert isinstance(client, tuple)
    return execute(question)


@frozen
class Posted:
    """A request to a webhook."""

    url: str
    body: bytes
    headers: dict[str, str]

    @property
    def json(self) -> Any:
        return msgspec.json.decode(self.body)


@define(eq=False)
class Receiver:
    """Takes what is sent to webhooks, unless it has a `failure`."""

    posted: list[Posted] = field(factory=list)
    failure: str = ""

    async def post(
        self, url: str, body: bytes, headers: Sequence[tuple[str, str]], allowed: Networks
    ) -> None:
        assert isinstance(allowed, Networks)
        if self.failure:
            raise NotDelivered(self.failure, "go away")
        self.posted.append(Posted(url, body, dict(headers)))


@define(eq=False)
class Server:
    """The whole daemon without its sockets. `now` is the time, in Unix seconds.

    Hits are stored by `append`, which tests may replace.
    """

    site: Site
    store: Store
    pipeline: Pipeline
    reactor: Clock
    append: Append
    receiver: Receiver
    now: float = NOW

    def browser(self, peer: str | None = "203.0.113.9", host: str = HOST) -> Browser:
        return Browser(self.site, peer=peer, host=host)

    async def owner(self) -> Browser:
        """Return a browser that is logged in."""
        token = new_token()
        await self.store.account.add_login(
            digest(token), Login(since=int(self.now), last_seen=int(self.now))
        )
        return Browser(self.site, token)

    def set(self, **settings: object) -> None:
        """Change settings of the web side."""
        self.site.settings = evolve(self.site.settings, **settings)

    async def doubt_the_clock(self, days: int) -> None:
        """Store a view of so many days ago, so that the clock is not trusted yet."""
        now_ms = int(self.now * 1000)
        website = await self.store.add_website("example.com", 1)
        first = {"first_today": True, "first_of_page": True, "path": "/"}
        at_ms = now_ms - days * 86_400_000
        await self.store.append([View(website=website.number, time_ms=at_ms, beacon="b", **first)])
        await self.store.maintain(now_ms, 0)


async def build_server(
    data_dir: Path,
    now: float = NOW,
    sizes: Sizes = Sizes(),  # noqa: B008 - it is frozen
    map_size: int = 64 << 20,
) -> Server:
    """Assemble the daemon on a directory and what it contains."""
    store = start_store(
        data_dir / "data", StoreSettings(map_size=map_size, min_free_disk=0), reactor, sizes
    )

    def clock() -> float:
        return built.now

    async def append(hits: Sequence[Hit]) -> list[Outcome]:
        return await built.append(hits)

    accounts = Accounts(
        records=store.account,
        replace=store.replace_account,
        data_dir=data_dir,
        hashing=execute,
        clock=clock,
        environ={"MEDAMAD_USERNAME": USERNAME, "MEDAMAD_PASSWORD": PASSWORD},
    )
    pipeline = Pipeline(
        store.websites,
        WriteQueue(append, reactor),
        PendingRobots(store.robots.add),
        Rules(
            blocked=Networks([ip_network("192.0.2.0/24")]),
            spam=SpamHosts(["spam.example"]),
            hits_per_minute=0,
        ),
        clock,
    )
    turns = Clock()
    site = make_site(
        store=store,
        pipeline=pipeline,
        accounts=accounts,
        run_query=at_once,
        mailer=KeptMails(MAIL, reactor, clock, execute),
        settings=WebSettings(sources=SOURCES, data_dir=data_dir, commit="c0ffee1"),
        clock=clock,
        reactor=turns,
    )
    receiver = Receiver()
    site.backend.alerts = AlertWatch(site.backend, receiver.post, "secret of {}".format, 0)
    built = Server(site, store, pipeline, turns, store.append, receiver, now)
    if store.account.read() is None:
        await store.account.put(Account(USERNAME, HASH, created=NOW, updated=NOW))
    return built


async def sent(server: Server) -> None:
    """Wait until no alert is being sent."""
    watch = server.site.backend.alerts
    assert isinstance(watch, AlertWatch)
    while waiting := list(watch._sending.values()):
        done: Deferred[None] = Deferred()
        waiting[0].addBoth(lambda result, done=done: (done.callback(None), result)[1])
        await done
