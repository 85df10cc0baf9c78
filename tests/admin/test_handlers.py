"""What commands receive: the status, and the answer to an import of settings."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import pytest_twisted
from attrs import evolve
from support.web.daemon_in_memory import Server, build_server
from twisted.internet.defer import Deferred

from medamad.admin.handlers import AdminHandlers
from medamad.admin.protocol import DaemonState, ImportSettings, Status
from medamad.domain.errors import BadRequest
from medamad.domain.exported_settings import ExportedSettings
from medamad.domain.goals import Exclusion
from medamad.domain.hits import Unload, View
from medamad.domain.website_settings import WebsiteSettings
from medamad.ingest.networks import Sender, address_of
from medamad.storage.settings import Keep, Retention


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    built = pytest_twisted.blockon(Deferred.fromCoroutine(build_server(tmp_path)))
    yield built
    pytest_twisted.blockon(Deferred.fromCoroutine(built.store.close()))


async def all_is_well() -> list[str]:
    return []


async def state(server: Server, tmp_path: Path, **fields: Any) -> DaemonState:
    return await handlers(server, tmp_path, **fields).status(Status(), lambda _progress: None)


def handlers(server: Server, tmp_path: Path, **fields: Any) -> AdminHandlers:
    given = {
        "started": 1,
        "listening": (),
        "url": "",
        "config_file": None,
        "config_warnings": all_is_well,
        "login_file": tmp_path / "none",
    }
    return AdminHandlers(site=server.site, **(given | fields))


@pytest_twisted.ensureDeferred
async def test_retention_waiting_for_the_clock_is_a_warning(server: Server, tmp_path: Path) -> None:
    store = server.store
    await server.doubt_the_clock(days=9)
    store.apply(evolve(store.settings, retention=Retention(others=Keep(5))))
    assert (await state(server, tmp_path)).warnings == (
        (
            "the clock is not trusted yet: [retention] removes nothing until the daemon has run"
            " for 24 more hours"
        ),
    )
    store.apply(evolve(store.settings, retention=Retention(others=Keep(20))))
    assert (await state(server, tmp_path)).warnings == ()


@pytest_twisted.ensureDeferred
async def test_a_table_without_a_website_is_a_warning(server: Server, tmp_path: Path) -> None:
    website = await server.store.add_website("twin.example", 1)
    kept = Retention(others=Keep(20), websites={"twin.example": Keep(0)})
    server.store.apply(evolve(server.store.settings, retention=kept))
    assert (await state(server, tmp_path)).warnings == ()
    await server.store.rename_website(website, "renamed.example", 2)
    assert (await state(server, tmp_path)).warnings == (
        (
            "retention.websites.twin.example: no website of this name is registered;"
            " websites without a table keep their views for at least as long as it says"
        ),
    )


@pytest_twisted.ensureDeferred
async def test_what_is_wrong_with_the_configuration_comes_first(
    server: Server, tmp_path: Path
) -> None:
    async def warnings() -> list[str]:
        return ["the configuration on disk is not in use: f: k: r"]

    server.site.settings.data_dir.chmod(0o755)
    assert (await state(server, tmp_path, config_warnings=warnings)).warnings == (
        "the configuration on disk is not in use: f: k: r",
        (
            "every user of this machine may enter the data directory: chmod o="
            f" {server.site.settings.data_dir}"
        ),
    )


@pytest_twisted.ensureDeferred
async def test_live_visitors_are_those_whom_nothing_leaves_out(
    server: Server, tmp_path: Path
) -> None:
    now_ms = int(server.site.backend.clock() * 1000)
    for hostname in ("example.com", "other.example"):
        website = await server.store.add_website(hostname, 1)
        await server.store.append(
            [
                View(
                    website=website.number,
                    time_ms=now_ms - ago_ms,
                    beacon=f"{hostname} {path}",
                    first_today=True,
                    first_of_page=True,
                    path=path,
                )
                for path, ago_ms in (("/", 0), ("/a", 300_000), ("/b", 300_001), ("/flood", 1))
            ]
        )
    left = Unload(time_ms=now_ms, beacon="other.example /", duration_ms=10)
    await server.store.append([left])
    assert (await state(server, tmp_path)).visitors == 5
    flood = Exclusion(id="flood", name="Flood", filters=(("path", "/flood"),), created=1)
    await server.store.goals.change(website.number, lambda old: old.with_exclusion(flood))
    assert (await state(server, tmp_path)).visitors == 4


@pytest_twisted.ensureDeferred
async def test_a_limit_that_is_used_up_is_a_warning(server: Server, tmp_path: Path) -> None:
    website = await server.store.add_website("example.com", 1)
    server.store.apply(evolve(server.store.settings, other_new_values=1))
    now_ms = int(server.site.backend.clock() * 1000)
    views = [
        View(
            website=website.number,
            time_ms=now_ms,
            beacon=browser,
            first_today=True,
            first_of_page=True,
            path="/",
            browser=browser,
        )
        for browser in ("A", "B")
    ]
    await server.store.append(views)
    (warning,) = (await state(server, tmp_path)).warnings
    assert warning.startswith(
        "example.com: new values of browser, all of them or those of one network, count as (other)"
    )
    assert "[limits] new_values" in warning


@pytest_twisted.ensureDeferred
async def test_a_proxy_that_is_not_trusted_is_a_warning(server: Server, tmp_path: Path) -> None:
    for _ in range(200):
        server.site.backend.pipeline.senders.count(Sender(address_of("127.0.0.1")))
    (warning,) = (await state(server, tmp_path)).warnings
    assert warning.startswith("nearly all hits come from 127.0.0.1, so visitors with the same")


@pytest_twisted.ensureDeferred
async def test_a_quiet_website_is_a_warning(server: Server, tmp_path: Path) -> None:
    website = await server.store.add_website("example.com", 1)
    await server.store.add_website("other.example", 1)
    server.site.backend.quiet[website.number] = 1
    assert (await state(server, tmp_path)).warnings == (
        "example.com has gone quiet: it usually has visits at these hours",
    )


@pytest_twisted.ensureDeferred
async def test_imported_settings_are_what_the_preset_for_privacy_allows(
    server: Server, tmp_path: Path
) -> None:
    await server.store.add_website("example.com", 1)
    server.pipeline.rules = evolve(server.pipeline.rules, is_exempt=True, respect_gpc=True)
    for respects, counted in ((False, None), (True, 1)):
        settings = ExportedSettings(settings=WebsiteSettings(respect_gpc=respects))
        asked = handlers(server, tmp_path).import_settings(
            ImportSettings("example.com", settings), lambda _progress: None
        )
        if counted is None:
            with pytest.raises(BadRequest, match=r"^respect_gpc: the configuration's preset for"):
                await asked
        else:
            assert (await asked).settings == counted
