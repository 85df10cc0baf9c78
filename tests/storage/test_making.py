from collections.abc import Iterator
from typing import Any

from medamad.storage.compaction.planner import CompactionJob, Piece


def test_what_is_left_goes_on_where_it_stopped() -> None:
    """The writer takes some steps, leaves for hits that wait, and comes back."""
    done: list[str] = []

    def looking_up(piece: str) -> Iterator[None]:
        for number in range(3):
            done.append(f"{piece}: looked up {number}")
            yield

    def piece(name: str) -> Piece:
        def make() -> Any:
            done.append(f"{name}: made")
            return written

        written: Any = type("Written", (), {"puts": iter(())})
        return Piece(1, b"", make, looking_up(name))

    making: Any = CompactionJob(None, [piece("a"), piece("b")], None)  # type: ignore[arg-type]
    for steps in range(1, 9):
        next(making.steps(None))
        assert len(done) == steps, "one thing at a time"
    assert list(making.steps(None)) == []
    assert done == [
        f"{name}: {what}"
        for name in "ab"
        for what in ("looked up 0", "looked up 1", "looked up 2", "made")
    ]
