"""An import whose command ends."""

from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
import pytest_twisted
from support.storage.log_lines import logged_warnings
from support.web.daemon_in_memory import Server, build_server
from twisted.internet.defer import CancelledError, Deferred
from twisted.logger import LogLevel

from medamad.admin.imports import (
    BeginImport,
    FinishImport,
    HoldImport,
    ImportFailed,
    ImportHandlers,
    UndoImport,
)
from medamad.domain.errors import Unavailable
from medamad.storage.import_batches import ImportBatch


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    built = pytest_twisted.blockon(Deferred.fromCoroutine(build_server(tmp_path)))
    yield built
    pytest_twisted.blockon(Deferred.fromCoroutine(built.store.close()))


def ignore_progress(_: object) -> None:
    """Discard progress."""


@pytest_twisted.ensureDeferred
async def test_an_abandoned_import_does_not_block_others(server: Server) -> None:
    await server.store.add_website("twin.example", 1)
    handlers = ImportHandlers(server.store, lambda: 7)
    request = BeginImport(
        website="twin.example", source="", digest="", ranges=(("feed", 1, 9),), newest=0
    )
    left = Deferred.fromCoroutine(handlers.begin(request, ignore_progress))
    left.cancel()
    with pytest.raises(CancelledError):
        await left
    website = server.store.websites.by_hostname("twin.example")
    assert website is not None
    # The writer works sequentially: the import began before this is answered.
    await server.store.rename_website(website, "renamed.example", 2)
    await server.store.rename_website(website, "twin.example", 3)
    assert (await handlers.begin(request, ignore_progress)).number == 2


@pytest_twisted.ensureDeferred
async def test_a_failure_is_known_until_an_import_is_complete(server: Server) -> None:
    website = await server.store.add_website("twin.example", 1)
    failures: dict[int, str] = {}
    handlers = ImportHandlers(server.store, lambda: 7, failures=failures)
    request = BeginImport(
        website="twin.example", source="", digest="", ranges=(("feed", 1, 9),), newest=0
    )
    with logged_warnings() as lines:
        await handlers.failed(ImportFailed("twin.example", "no such file"), ignore_progress)
    assert failures == {website.number: "no such file"}
    assert lines == ["an import into twin.example failed: no such file"]
    begun = await handlers.begin(request, ignore_progress)
    assert failures == {website.number: "no such file"}
    await handlers.finish(FinishImport(number=begun.number), ignore_progress)
    assert failures == {website.number: ""}
    left = await handlers.begin(
        msgspec.structs.replace(request, digest="2", newest=begun.number), ignore_progress
    )
    holding = Deferred.fromCoroutine(handlers.hold(HoldImport(left.number), ignore_progress))
    holding.cancel()
    with pytest.raises(CancelledError):
        await holding
    assert failures == {website.number: "the command ended before the import was complete"}
    # The writer works sequentially: the import is removed before this is answered.
    await server.store.rename_website(website, "renamed.example", 2)


@pytest_twisted.ensureDeferred
async def test_an_import_is_logged(server: Server) -> None:
    await server.store.add_website("twin.example", 1)
    handlers = ImportHandlers(server.store, lambda: 7)
    request = BeginImport(
        website="twin.example", source="", digest="", ranges=(("feed", 1, 9),), newest=0
    )
    begun = await handlers.begin(request, ignore_progress)
    with logged_warnings(LogLevel.info) as lines:
        await handlers.finish(FinishImport(number=begun.number), ignore_progress)
    assert lines == ["import 1 into twin.example is complete: views (0), events (0)"]


@pytest_twisted.ensureDeferred
async def test_an_import_that_the_cluster_does_not_take_is_not_complete(server: Server) -> None:
    website = await server.store.add_website("twin.example", 1)
    sent: list[ImportBatch] = []

    async def send(batch: ImportBatch, _report: object) -> None:
        sent.append(batch)
        assert server.store.imports.batches(website) == []
        if len(sent) == 1:
            raise Unavailable("no server answers", retry_after=1)

    handlers = ImportHandlers(server.store, lambda: 7, send=send)
    request = BeginImport(
        website="twin.example", source="", digest="", ranges=(("feed", 1, 9),), newest=0
    )
    begun = await handlers.begin(request, ignore_progress)
    with pytest.raises(Unavailable, match="no server answers"):
        await handlers.finish(FinishImport(begun.number), ignore_progress)
    assert server.store.imports.batches(website) == []
    # As the command does.
    await handlers.undo(UndoImport("twin.example", begun.number), ignore_progress)
    begun = await handlers.begin(request, ignore_progress)
    await handlers.finish(FinishImport(begun.number), ignore_progress)
    assert [batch.number for batch in server.store.imports.batches(website)] == [begun.number]
    assert [batch.number for batch in sent] == [1, 2]


@pytest_twisted.ensureDeferred
async def test_imports_are_made_and_undone_on_the_primary(server: Server) -> None:
    website = await server.store.add_website("twin.example", 1)

    def refuse() -> None:
        raise Unavailable("settings are changed on collector 1", retry_after=1)

    handlers = ImportHandlers(server.store, lambda: 7, check_is_primary=refuse)
    request = BeginImport(
        website="twin.example", source="", digest="", ranges=(("feed", 1, 9),), newest=0
    )
    with pytest.raises(Unavailable, match="collector 1"):
        await handlers.begin(request, ignore_progress)
    allowing = ImportHandlers(server.store, lambda: 7)
    begun = await allowing.begin(request, ignore_progress)
    await allowing.finish(FinishImport(begun.number), ignore_progress)
    with pytest.raises(Unavailable, match="collector 1"):
        await handlers.undo(UndoImport("twin.example", begun.number), ignore_progress)
    assert len(server.store.imports.batches(website)) == 1
