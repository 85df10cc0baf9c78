from collections.abc import Iterator
from typing import Any

from attrs import define

from medamad.storage.compaction.job import Draft, Job
from medamad.storage.segments.build import EncodedSegment


@define(eq=False, kw_only=True)
class RecordingDraft(Draft):
    done: list[str]

    def prepare(self) -> Iterator[None]:
        for number in range(3):
            self.done.append(f"{self.number}: looked up {number}")
            yield

    def encode(self) -> EncodedSegment:
        self.done.append(f"{self.number}: encoded")
        header: Any = f"header {self.number}"
        return EncodedSegment(header, iter([(False, 7, b"value")]))


def test_a_job_is_written_in_small_steps_each_continuing_where_the_last_stopped() -> None:
    done: list[str] = []
    drafts = [RecordingDraft(number=number, key=b"key", done=done) for number in (1, 2)]
    nothing: Any = None
    writes = Job(partition=nothing, access=nothing, drafts=drafts).writes()
    of_one_draft = [None, None, None, None, (b"key", (False, 7, b"value"))]
    assert list(writes) == 2 * of_one_draft
    assert done == [
        f"{number}: {what}"
        for number in (1, 2)
        for what in ("looked up 0", "looked up 1", "looked up 2", "encoded")
    ]
    assert [draft.header for draft in drafts] == ["header 1", "header 2"]
    assert list(writes) == []
