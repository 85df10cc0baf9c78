"""An import whose command ends."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import pytest_twisted
from support.storage.log_lines import logged_warnings
from support.web.daemon_in_memory import Server, build_server
from twisted.internet.defer import CancelledError, Deferred
from twisted.logger import LogLevel

from medamad.admin.imports import BeginImport, FinishImport, ImportHandlers


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
