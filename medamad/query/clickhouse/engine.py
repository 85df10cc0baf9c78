"""The engine over ClickHouse, for the daemon."""

from collections.abc import Callable, Sequence
from typing import Final, TypeVar

from attrs import define, field
from twisted.logger import Logger

from medamad.clickhouse.client import ClickHouseError, Client
from medamad.clickhouse.tables import OtherTables, check_version
from medamad.domain.errors import Unavailable
from medamad.domain.websites import Website
from medamad.lookup.referrers import Sources
from medamad.query.clickhouse.left_out import VisitsLeftOut
from medamad.query.clickhouse.reader import ClickHouseReader
from medamad.query.clickhouse.texts import TextsOfWebsites
from medamad.query.engine import Engine
from medamad.query.reader import Reader
from medamad.query.request import Cancellation, Query

T = TypeVar("T")

_RETRY_AFTER_S: Final = 10


def unavailable() -> Unavailable:
    """Return the error for clients while a server that is needed does not answer.

    It does not give the reason, which names servers.
    """
    return Unavailable("the cluster does not answer at the moment", retry_after=_RETRY_AFTER_S)


@define(eq=False)
class ClickHouseEngine(Engine):
    """Answers from a cluster."""

    client: Client
    rules_of: Callable[[int], Sequence[Query]] = lambda _website: ()
    """Returns what the rules of a website leave out, by its number."""
    hidden_batches: Callable[[int], frozenset[int]] = lambda _website: frozenset()
    """Returns the import batches of a website that no query sees."""
    answered: Callable[[str], None] = lambda _failure: None
    """Called after each question with why it had no answer, "" if it had one. In any thread."""
    _texts: TextsOfWebsites = field(init=False)
    _visits_left_out: VisitsLeftOut = field(factory=VisitsLeftOut, init=False)
    _is_checked: bool = field(default=False, init=False)
    """Whether the tables have been found to be of this version."""
    _failure: str = field(default="", init=False)
    """Why the latest question had no answer, "" if it had one."""
    _log = Logger()

    def __attrs_post_init__(self) -> None:
        self._texts = TextsOfWebsites(self.client)

    def load(self, cancellation: Cancellation) -> None:
        """Load nothing: the start loads all that it needs, and the server keeps its own."""

    def read(
        self,
        website: Website,
        sources: Sources,
        cancellation: Cancellation,
        report: Callable[[Reader], T],
        *,
        leaves_out: bool = True,
    ) -> T:
        """Call `report` with a reader of a website, and return what it returns.

        Raises Unavailable while a server that is needed does not answer, or has other tables.
        """
        try:
            if not self._is_checked:
                check_version(self.client)
                self._is_checked = True
            rules = self.rules_of(website.number) if leaves_out else ()
            found = report(self.reader(website.number, sources, cancellation, rules))
        except (ClickHouseError, OtherTables) as error:
            if str(error) != self._failure:
                self._failure = str(error)
                self._log.error("the cluster answers no questions: {reason}", reason=self._failure)
            self.answered(self._failure)
            raise unavailable() from error
        self._failure = ""
        self.answered("")
        return found

    def reader(
        self,
        website: int,
        sources: Sources,
        cancellation: Cancellation,
        rules: Sequence[Query] = (),
    ) -> ClickHouseReader:
        """Return the reader of a website, by its number, for one request."""
        texts = self._texts.of(website, cancellation.check)
        hidden = self.hidden_batches(website)
        return ClickHouseReader(
            self.client,
            website,
            sources,
            cancellation,
            texts,
            rules,
            hidden=hidden,
            visits_left_out=self._visits_left_out,
        )
