"""The parts of the daemon that the routes use to serve requests."""

from collections import Counter
from collections.abc import Callable, Hashable, MutableMapping
from typing import Any, Final, Protocol, TypeVar

from attrs import define, field, frozen
from twisted.internet.defer import Deferred

from medamad.accounts.accounts import Accounts
from medamad.accounts.shares import Shares
from medamad.accounts.tokens import Tokens
from medamad.domain.alerts import Rule
from medamad.domain.backups import BackupState
from medamad.domain.cluster import NOT_PRIMARY_S, ClusterState
from medamad.domain.errors import Unavailable
from medamad.domain.timings import Timings
from medamad.ingest.hit_counts import RecentHits, Uncounted
from medamad.ingest.pipeline import Pipeline
from medamad.mail.mailer import Mailer
from medamad.query.engine import Engine
from medamad.storage.request_totals import RequestSources
from medamad.storage.store import Store
from medamad.web.server.limits import UnsentResponses
from medamad.web.settings import WebSettings

T = TypeVar("T")

_MOST_BEHIND_S: Final = 60
_RETRY_AFTER_S: Final = 10


@frozen
class Trial:
    """What came of trying a rule: what was said, and why it did not arrive, "" if it did."""

    text: str
    is_firing: bool
    error: str


class AlertWatching(Protocol):
    """The alerts of a running daemon. A website is named by its number, the service by SERVICE."""

    async def look(self) -> None:
        """Look at all rules, and send what they find."""

    async def try_now(self, website: int, rule_id: str, /) -> Trial:
        """Look at a rule now and send what it finds, as a test. Raises NotFound, Unavailable."""

    def failure_of(self, rule: Rule, /) -> str:
        """Return why the last notice of a rule did not arrive where it sends them, "" if it did."""

    def secret_of(self, url: str, /) -> str:
        """Return the secret that signs what is sent to a webhook."""


class OtherCollectors(Protocol):
    """The other collectors of the cluster."""

    async def answer(self, secret: bytes, message: bytes, /) -> bytes:
        """Return the answer to a message. Raises Forbidden for a wrong secret, and BadRequest."""

    async def requests(
        self, website: int, kind: int, first_day: int | None, last_day: int | None, /
    ) -> list[RequestSources]:
        """Return the requests that each has counted apart. Raises Unavailable if one is silent."""

    async def uncounted(self, website: int, /) -> list[list[Uncounted]]:
        """Return the hits that each did not count. Raises Unavailable if one is silent."""

    async def recent_hits(self) -> dict[int, RecentHits | None]:
        """Return the hits of the last day of each, by number; None of one that is silent."""


class RunQuery(Protocol):
    """Runs a query in the query pool."""

    def __call__(self, query: Callable[[], T], /, client: tuple[Hashable, ...] = ()) -> Deferred[T]:
        """Return the result of `query`, run in another thread when it is the client's turn."""


@frozen(eq=False)
class ResponseTimes:
    """How long responses took, in seconds."""

    hits: Timings = field(factory=Timings)
    statistics: Timings = field(factory=Timings)


@define(eq=False, kw_only=True)
class Backend:
    """The parts of the daemon that serve requests. `clock` returns Unix seconds.

    `seconds` is a monotonic clock, in seconds; `call_later` calls a function after a number of
    seconds. `settings` may be replaced at any time, even during a request.
    """

    store: Store
    engine: Engine
    """Answers statistics: from the store, or from a cluster."""
    pipeline: Pipeline
    accounts: Accounts
    tokens: Tokens
    shares: Shares
    run_query: RunQuery
    mailer: Mailer
    clock: Callable[[], float]
    seconds: Callable[[], float]
    call_later: Callable[..., Any]
    settings: WebSettings
    exports: Counter[bytes] = field(factory=Counter)
    """The number of exports in progress, by the network that receives them."""
    unsent: UnsentResponses = field(factory=UnsentResponses)
    unsent_to_guests: UnsentResponses = field(factory=UnsentResponses)
    """Responses to readers of share links, who have a limit of their own."""
    response_times: ResponseTimes = field(factory=ResponseTimes)
    backups: BackupState = field(factory=BackupState)
    alerts: AlertWatching | None = None
    """What looks at the alerts; None before that begins."""
    cluster: ClusterState | None = None
    """How far a cluster has the hits; None without one."""
    collectors: OtherCollectors | None = None
    """What speaks to the other collectors; None without any."""
    report_failures: MutableMapping[str, str] = field(factory=dict)
    """Why the last attempt to mail a report failed, by its id."""
    import_failures: MutableMapping[int, str] = field(factory=dict)
    """Why the last import into a website failed, "" if it did not, by number.

    Of those since the start of the daemon.
    """
    quiet: MutableMapping[int, int] = field(factory=dict)
    """The time of the last view of each website that has gone quiet, by number."""

    @property
    def is_primary(self) -> bool:
        """Whether settings are changed here, and mails and alerts sent from here."""
        return self.cluster is None or self.cluster.is_primary

    def check_is_primary(self) -> None:
        """Raise Unavailable, with the reason, if settings are changed on another collector."""
        if self.cluster is not None and (refusal := self.cluster.refusal):
            raise Unavailable(refusal, retry_after=NOT_PRIMARY_S)

    def check_complete(self) -> None:
        """Raise Unavailable if the engine lacks hits of more than a minute ago."""
        if self.cluster is not None and self.cluster.greatest_lag_s(self.clock()) > _MOST_BEHIND_S:
            raise Unavailable(
                "the cluster does not have the latest hits", retry_after=_RETRY_AFTER_S
            )
