"""The backend of the routes: the parts of the daemon that serve requests."""

from collections import Counter
from collections.abc import Callable, Hashable, MutableMapping
from typing import Any, Protocol, TypeVar

from attrs import define, field, frozen
from twisted.internet.defer import Deferred

from medamad.accounts.accounts import Accounts
from medamad.accounts.shares import Shares
from medamad.accounts.tokens import Tokens
from medamad.domain.backups import BackupState
from medamad.domain.timings import Timings
from medamad.ingest.pipeline import Pipeline
from medamad.storage.store import Store
from medamad.web.server.admission import UnsentResponses
from medamad.web.settings import WebSettings
from medamad.web.usage import Usage

T = TypeVar("T")


class Ask(Protocol):
    """Runs a query in the query pool."""

    def __call__(
        self, question: Callable[[], T], /, client: tuple[Hashable, ...] = ()
    ) -> Deferred[T]:
        """Return the answer of `question`, found in another thread when it is the client's turn."""


@frozen(eq=False)
class Times:
    """How long responses took."""

    hits: Timings = field(factory=Timings)
    statistics: Timings = field(factory=Timings)


@define(eq=False, kw_only=True)
class Backend:
    """The parts of the daemon that serve requests. `clock` returns Unix seconds.

    `seconds` returns the seconds since any fixed moment; `call_later` calls a function after a
    number of seconds. `settings` may be replaced at any time, even during a request.
    """

    store: Store
    pipeline: Pipeline
    accounts: Accounts
    tokens: Tokens
    shares: Shares
    ask: Ask
    clock: Callable[[], float]
    seconds: Callable[[], float]
    call_later: Callable[..., Any]
    settings: WebSettings
    usage: Usage
    exports: Counter[bytes] = field(factory=Counter)
    """The number of exports in progress, by the network that receives them."""
    unsent: UnsentResponses = field(factory=UnsentResponses)
    unsent_to_guests: UnsentResponses = field(factory=UnsentResponses)
    """Responses to readers of share links, who cannot use up the others' limit."""
    times: Times = field(factory=Times)
    backups: BackupState = field(factory=BackupState)
    quiet: MutableMapping[int, int] = field(factory=dict)
    """Websites that have gone quiet: the time of their last view, by number."""
