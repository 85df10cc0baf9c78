"""When backups are made by themselves, and which of them go."""

from datetime import UTC, datetime, time
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
import pytest_twisted
from attrs import define, field
from twisted.internet.defer import CancelledError, Deferred, execute

from medamad.daemon.backup_folder import do_task
from medamad.daemon.backup_schedule import BackupFailed, Plan, Schedule
from medamad.domain.backups import Backups, Done, Task

NOON = datetime(2026, 3, 10, 12, tzinfo=UTC).timestamp()
HOUR = 3_600
DAY = 24 * HOUR


def touch(file: Path) -> None:
    file.write_bytes(b"")


@define
class CompactionJob:
    """Makes backups of no content, or fails, or lets them wait."""

    folder: Path
    now: float = NOON
    trusted: float = float("inf")
    """How far the clock is trusted."""
    made: list[str] = field(factory=list)
    reason: str = ""
    backups: Backups = field(factory=Backups)
    tasks: list[Task] = field(factory=list)
    waiting: "Deferred[Done] | None" = None
    """What is given instead of doing a task."""

    def do(self, task: Task) -> "Deferred[Done]":
        self.tasks.append(task)
        return self.waiting or execute(do_task, task, self.make)

    def make(self, target: Path) -> None:
        if self.reason:
            raise BackupFailed(self.reason)
        touch(target)
        self.made.append(target.name)

    def schedule(self, at: time = time(3, 30), keep: int = 3) -> Schedule:
        plan = Plan(self.folder, at, UTC, keep)
        return Schedule(plan, self.backups, lambda: self.now, self.how_far, self.do)

    def how_far(self, now: float) -> float:
        assert now == self.now
        return min(now, self.trusted)

    def there(self) -> list[str]:
        return sorted(file.name for file in self.folder.iterdir())


@pytest_twisted.ensureDeferred
async def test_one_is_made_each_day_at_its_time(tmp_path: Path) -> None:
    making = CompactionJob(tmp_path / "backups")
    schedule = making.schedule()
    await schedule.look()
    assert making.made == ["medamad-20260310-120000Z.mdb.zst"], "the first at once"
    for hour in range(1, 38):
        making.now = NOON + hour * HOUR
        await schedule.look()
    assert making.made[1:] == ["medamad-20260311-040000Z.mdb.zst"]
    assert making.backups.made == int(datetime(2026, 3, 11, 4, tzinfo=UTC).timestamp())
    assert making.backups.failures == 0


@pytest_twisted.ensureDeferred
async def test_one_that_was_missed_is_made_up_for(tmp_path: Path) -> None:
    making = CompactionJob(tmp_path)
    await making.schedule().look()
    making.now = NOON + 5 * DAY
    again = making.schedule()
    await again.look()
    await again.look()
    assert len(making.made) == 2


@pytest_twisted.ensureDeferred
async def test_as_many_are_kept_as_are_asked_for_and_nothing_else_goes(tmp_path: Path) -> None:
    others = ["before-format-4-20200101-000000Z.mdb.zst", "medamad-mine.mdb.zst", "notes.txt"]
    others.append("medamad-20209999-000000Z.mdb.zst")
    for name in others:
        (tmp_path / name).write_bytes(b"")
    left = tmp_path / ".medamad-20200101-000000Z.mdb.zst.part"
    left.write_bytes(b"of one that was killed")
    making = CompactionJob(tmp_path)
    schedule = making.schedule(keep=2)
    for day in range(5):
        making.now = NOON + day * DAY
        await schedule.look()
    assert len(making.made) == 5
    assert making.there() == sorted([*others, *making.made[-2:]])


@pytest_twisted.ensureDeferred
async def test_one_that_failed_is_told_of_and_tried_again_in_an_hour(tmp_path: Path) -> None:
    making = CompactionJob(tmp_path, reason="no room")
    schedule = making.schedule(keep=1)
    (tmp_path / "medamad-20260301-033000Z.mdb.zst").write_bytes(b"")
    await schedule.look()
    await schedule.look()
    assert (making.backups.failures, making.backups.failure) == (1, "no room")
    assert making.there() == ["medamad-20260301-033000Z.mdb.zst"], "an old one has gone"
    making.now += HOUR
    making.reason = ""
    await schedule.look()
    assert (making.backups.failures, making.backups.failure) == (1, "")
    assert making.there() == ["medamad-20260310-130000Z.mdb.zst"]


@pytest_twisted.ensureDeferred
async def test_another_plan_is_tried_at_once_and_the_old_complaint_goes(tmp_path: Path) -> None:
    making = CompactionJob(tmp_path / "bad", reason="no room")
    schedule = making.schedule()
    bad = schedule.plan
    await schedule.look()
    assert making.backups.failure
    making.reason = ""
    schedule.go_by(Plan(tmp_path / "good", time(3, 30), UTC, 3))
    assert making.backups.failure == ""
    await schedule.look()
    assert making.made == ["medamad-20260310-120000Z.mdb.zst"]
    assert making.backups == Backups(made=int(NOON), failures=1)
    schedule.go_by(bad)
    making.reason = "no room"
    await schedule.look()
    assert making.backups.failure
    schedule.go_by(None)
    assert making.backups == Backups(failures=2)


@pytest_twisted.ensureDeferred
async def test_a_reload_by_the_same_plan_tries_again_and_keeps_what_is_known(
    tmp_path: Path,
) -> None:
    making = CompactionJob(tmp_path)
    schedule = making.schedule()
    await schedule.look()
    making.now, making.reason = NOON + DAY, "no room"
    await schedule.look()
    making.reason = ""
    schedule.go_by(schedule.plan)
    assert making.backups == Backups(made=int(NOON), failures=1, failure="no room")
    await schedule.look()
    assert making.backups == Backups(made=int(NOON + DAY), failures=1)


@pytest_twisted.ensureDeferred
async def test_what_is_under_way_by_a_plan_that_is_replaced_ends_and_is_not_told_of(
    tmp_path: Path,
) -> None:
    ended: list[Deferred[Done]] = []
    making = CompactionJob(tmp_path, waiting=Deferred(ended.append))
    schedule = making.schedule(keep=1)
    looking = Deferred.fromCoroutine(schedule.look())
    schedule.go_by(schedule.plan)
    assert not ended, "the plan is the same"
    schedule.go_by(Plan(tmp_path, time(3, 30), UTC, 2))
    await looking
    assert ended
    assert making.backups == Backups()
    making.waiting = None
    await schedule.look()
    assert making.made == [], "it has to end first"
    making.now += 10
    await schedule.look()
    assert len(making.made) == 1


@pytest_twisted.ensureDeferred
async def test_what_is_under_way_ends_with_the_schedule(tmp_path: Path) -> None:
    ended: list[Deferred[Done]] = []
    making = CompactionJob(tmp_path, waiting=Deferred(ended.append))
    looking = Deferred.fromCoroutine(making.schedule().look())
    looking.cancel()
    with pytest.raises(CancelledError):
        await looking
    assert ended
    assert making.backups == Backups()


@pytest_twisted.ensureDeferred
async def test_nobody_goes_to_the_folder_but_by_a_task_and_only_when_one_may_be_due(
    tmp_path: Path,
) -> None:
    """A disk that does not answer is none of the daemon's."""
    making = CompactionJob(tmp_path / "gone", waiting=Deferred())
    schedule = making.schedule()
    looking = Deferred.fromCoroutine(schedule.look())
    assert not (tmp_path / "gone").exists()
    (task,) = making.tasks
    assert task == Task(
        folder=str(tmp_path / "gone"),
        now=NOON,
        due=datetime(2026, 3, 10, 3, 30, tzinfo=UTC).timestamp(),
        trusted=NOON,
        keep=3,
    )
    making.waiting.callback(Done(newest=int(NOON) - HOUR))
    await looking
    await schedule.look()
    assert making.tasks == [task], "what is known is enough"
    assert making.backups == Backups(made=int(NOON) - HOUR)


@pytest_twisted.ensureDeferred
async def test_a_clock_that_is_set_back_stops_nothing(tmp_path: Path) -> None:
    making = CompactionJob(tmp_path, now=NOON + 400 * DAY, reason="no room")
    schedule = making.schedule()
    await schedule.look()
    making.reason, making.now = "", NOON
    (tmp_path / "medamad-20290101-000000Z.mdb.zst").write_bytes(b"of a time to come")
    await schedule.look()
    assert making.made == ["medamad-20260310-120000Z.mdb.zst"]


@pytest_twisted.ensureDeferred
async def test_one_of_a_time_to_come_pushes_out_none_when_the_clock_is_back(tmp_path: Path) -> None:
    ahead = ["medamad-20290101-000000Z.mdb.zst", "medamad-20290102-000000Z.mdb.zst"]
    for name in ahead:
        touch(tmp_path / name)
    making = CompactionJob(tmp_path)
    schedule = making.schedule(keep=1)
    for day in range(3):
        making.now = NOON + day * DAY
        await schedule.look()
        assert making.there() == [making.made[-1], *ahead]
    making.now = datetime(2029, 1, 3, tzinfo=UTC).timestamp()
    await schedule.look()
    assert making.there() == making.made[-1:]


@pytest_twisted.ensureDeferred
async def test_one_of_a_clock_that_is_not_trusted_pushes_out_none(tmp_path: Path) -> None:
    making = CompactionJob(tmp_path)
    schedule = making.schedule(keep=2)
    for day in range(3):
        making.now = NOON + day * DAY
        await schedule.look()
    before = making.made[-2:]
    assert making.there() == before
    making.trusted = making.now
    making.now += 400 * DAY
    await schedule.look()
    assert making.there() == [*before, making.made[-1]]
    making.trusted = making.now = making.now + DAY
    await schedule.look()
    assert making.there() == making.made[-2:]


@pytest_twisted.ensureDeferred
async def test_without_a_plan_none_is_made(tmp_path: Path) -> None:
    making = CompactionJob(tmp_path)
    schedule = making.schedule()
    schedule.go_by(None)
    await schedule.look()
    assert making.made == []


def test_the_time_is_that_of_the_zone_also_when_the_clocks_change() -> None:
    plan = Plan(Path(), time(2, 30), ZoneInfo("Europe/Berlin"), 1)
    for now, due in (
        ("2026-03-28T12:00+01:00", "2026-03-28T02:30+01:00"),
        ("2026-03-29T12:00+02:00", "2026-03-29T03:30+02:00"),
        ("2026-03-30T02:29+02:00", "2026-03-29T03:30+02:00"),
        ("2026-10-25T12:00+01:00", "2026-10-25T02:30+02:00"),
    ):
        given = datetime.fromisoformat(now).timestamp()
        assert plan.last_due(given) == datetime.fromisoformat(due).timestamp()
