"""What is being written in the background: under which keys, of what, and in whose place."""

from collections.abc import Callable, Iterator, Sequence

from attrs import define, field

from medamad.store.blocks import Block
from medamad.store.corrections import Correction
from medamad.store.environment import Databases
from medamad.store.reading import Writing
from medamad.store.sealing import Content, Written
from medamad.store.shelf import Shelf
from medamad.store.tail import Cut


@define(eq=False)
class Piece:
    """A block, a group, or the sums of a day."""

    number: int
    key: bytes
    """What its keys begin with."""
    make: Callable[[], Written]
    looking_up: Iterator[None] = field(factory=lambda: iter(()))
    """Finds out beforehand, bit by bit, what `make` needs to know."""
    written: Written | None = None


@define(eq=False)
class Making:
    """Pieces that are shown together, once all are written."""

    shelf: Shelf
    pieces: Sequence[Piece]
    writing: Writing
    members: Sequence[Block] = ()
    """Of the one piece that is a group."""
    replaced: Sequence[Block] = ()
    contained: Sequence[Correction] = ()
    """The corrections that the pieces have."""
    cut: Cut | None = None
    gone: Content | None = None
    """The hits of which sums remain at most: nothing may be corrected of them any more."""

    def steps(self, databases: Databases) -> Iterator[None]:
        """Write bit by bit, in whatever transaction `writing` is at; goes on where it stopped."""
        for piece in self.pieces:
            if piece.written is None:
                # By `yield from`, to be left here would end it.
                for _ in piece.looking_up:
                    yield
                piece.written = piece.make()
                yield
            for is_counters, kind, value in piece.written.puts:
                database = databases.counters if is_counters else databases.blocks
                self.writing.txn.put(piece.key + bytes((kind,)), value, db=database)
                yield

    def written(self) -> list[tuple[Piece, Written]] | None:
        """Give what each piece has become; None as long as one has not."""
        written = [(piece, piece.written) for piece in self.pieces if piece.written is not None]
        return written if len(written) == len(self.pieces) else None

    def is_overtaken(self) -> bool:
        """Tell whether more has become known of hits that go, which their sums do not have."""
        if self.gone is None:
            return False
        return not set(self.shelf.corrections_of(self.gone)) <= set(self.contained)
