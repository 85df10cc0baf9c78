"""The engine over the store, for the daemon."""

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from attrs import frozen

from medamad.domain.websites import Website
from medamad.lookup.referrers import Sources
from medamad.query.engine import Engine
from medamad.query.request import Cancellation
from medamad.storage.store import Store

if TYPE_CHECKING:
    from medamad.query.reader import Reader

T = TypeVar("T")


@frozen(eq=False)
class EmbeddedEngine(Engine):
    """Answers from the store of this machine."""

    store: Store

    def read(
        self,
        website: Website,
        sources: Sources,
        cancellation: Cancellation,
        report: "Callable[[Reader], T]",
    ) -> T:
        """Call `report` with a reader of a website, and return what it returns."""
        from medamad.query.embedded.reader import EmbeddedReader  # noqa: PLC0415 - imports much

        return self.store.read(
            website, lambda snapshot: report(EmbeddedReader(snapshot, sources, cancellation))
        )

    def visitors_last_day(self, website: Website, now_ms: int) -> int:
        """Count the visitors of the last 24 hours."""
        return self.store.visitors_last_day(website, now_ms)
