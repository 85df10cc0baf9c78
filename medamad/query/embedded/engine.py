"""The engine over the store, for the daemon."""

from collections.abc import Callable, Generator
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeVar

from attrs import frozen

from medamad.domain.errors import NotFound
from medamad.domain.websites import Website
from medamad.lookup.referrers import Sources
from medamad.query.engine import Engine
from medamad.query.request import Cancellation
from medamad.storage.compaction.division import FindLeftOut, LeftOut
from medamad.storage.store import Store

if TYPE_CHECKING:
    from medamad.query.embedded.reader import EmbeddedReader

T = TypeVar("T")


def left_out_finder(sources: Sources) -> FindLeftOut:
    """Return what finds what rules leave out of hits that expire, given the names of sources."""

    def find(*arguments: Any) -> Generator[None, None, LeftOut]:
        # It imports much.
        from medamad.query.embedded.excluded import find_left_out  # noqa: PLC0415

        return find_left_out(sources, *arguments)

    return find


@frozen(eq=False)
class EmbeddedEngine(Engine):
    """Answers from the store of this machine."""

    store: Store

    def load(self, cancellation: Cancellation) -> None:
        """Import what statistics are answered by, and find what is cached for large websites."""
        import numpy.ma  # noqa: F401, PLC0415 - as the first call of `np.unique` would

        from medamad.query.embedded.reader import EmbeddedReader  # noqa: PLC0415 - as in `read`

        for website in self.store.websites.all():
            with suppress(NotFound):  # deleted meanwhile
                self.read(website, Sources({}), cancellation, EmbeddedReader.prepare)

    def read(
        self,
        website: Website,
        sources: Sources,
        cancellation: Cancellation,
        report: "Callable[[EmbeddedReader], T]",
        *,
        leaves_out: bool = True,
    ) -> T:
        """Call `report` with a reader of a website, and return what it returns."""
        # These import much.
        from medamad.query.embedded.reader import EmbeddedReader  # noqa: PLC0415
        from medamad.query.exclusions import rules_of  # noqa: PLC0415

        rules = rules_of(self.store.goals.of(website.number)) if leaves_out else ()
        return self.store.read(
            website, lambda snapshot: report(EmbeddedReader(snapshot, sources, cancellation, rules))
        )

    def visitors_last_day(self, website: Website, now_ms: int) -> int:
        """Count the visitors of the last 24 hours."""
        if not self.store.goals.of(website.number).exclusions:
            return self.store.visitors_last_day(website, now_ms)
        return super().visitors_last_day(website, now_ms)
