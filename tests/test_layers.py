import ast
from functools import cache
from pathlib import Path

import pytest

import medamad

ROOT = Path(medamad.__file__).parent
MODULES = sorted(
    path for path in ROOT.rglob("*.py") if not {"node_modules", "frontend"} & set(path.parts)
)

MAY_IMPORT = {
    "domain": set(),
    "build": {""},
    "lookup": {"domain", "build"},
    "storage": {"domain", "build"},
    "clickhouse": {"domain"},
    "cluster": {"clickhouse", "storage", "domain"},
    "ingest": {"storage", "lookup", "domain"},
    "query": {"clickhouse", "storage", "lookup", "domain", "build"},
    "accounts": {"storage", "domain"},
    "alerts": {"mail", "query", "domain"},
    "mail": {"query", "domain"},
    "demo": {"storage", "lookup", "domain"},
    "transfer": {"ingest", "query", "storage", "lookup", "domain"},
    "web": {
        "mail",
        "ingest",
        "query",
        "accounts",
        "transfer",
        "storage",
        "lookup",
        "domain",
        "build",
    },
    "config": {"mail", "web", "ingest", "storage", "lookup", "domain", "build"},
    "admin": {"mail", "web", "ingest", "query", "accounts", "storage", "lookup", "domain", "build"},
    "daemon": {
        "admin",
        "alerts",
        "clickhouse",
        "cluster",
        "config",
        "web",
        "ingest",
        "query",
        "accounts",
        "mail",
        "transfer",
        "storage",
        "lookup",
        "domain",
        "build",
    },
}
"""What each package may import besides itself. `cli` may import everything."""

ENGINES = {
    "medamad.query.embedded": {
        "admin/handlers.py",  # `status` is of this collector alone
        "cli/export.py",
        "cli/privacy.py",  # counts visits in columns of the store
        "cli/reading.py",  # chooses the engine of commands
        "cli/retention.py",  # what rules leave out of hits that expire is found in the store
        "daemon/service.py",  # as `cli/retention.py`
        "transfer/export.py",  # exports one snapshot, which it has to read by itself
        "web/app.py",  # the engine, unless the daemon has chosen another
    },
    "medamad.query.clickhouse": {
        "cli/export.py",
        "cli/import_.py",
        "cli/reading.py",
        "daemon/service.py",  # chooses the engine
        "transfer/cluster_export.py",
        "transfer/cluster_import.py",
        "web/routes/exports.py",
    },
    "medamad.storage.segments": {
        "admin/import_requests.py",  # an import hands over columns
        "cli/export.py",  # a sentence about damage
        "cluster/block.py",
        "cluster/shipper.py",
        "query/clickhouse/reader.py",  # which views bounce
        "transfer/cluster_import.py",
        "transfer/export.py",
        "transfer/import_days.py",
        "transfer/import_rows.py",
    },
    "medamad.build.load_kernel": {
        "web/app.py"  # the daemon does not start without
    },
}
"""What finds sums, and the modules that may import it. Wherever in a module the import is."""

HOMES = {
    "medamad.query.embedded": {"query/embedded"},
    "medamad.query.clickhouse": {"query/clickhouse"},
    "medamad.storage.segments": {"query/embedded", "storage"},
    "medamad.build.load_kernel": {"query/embedded"},
}
"""The folders whose modules may import each of `ENGINES` as well."""

KNOWN_OF_STORE = {"medamad.storage.dictionary.decode", "medamad.storage.request_totals"}
"""All that what a statistic means may import of the store: texts, and counts other than of hits."""

PROTOCOLS = {"admin/server.py", "mail/smtp.py"}
"""The modules below `web` that speak to sockets."""

DEFERRED = {
    "accounts/accounts.py",
    "accounts/tokens.py",
    "ingest/write_queue.py",
    "admin/imports.py",
    "storage/environment/access.py",
    "storage/environment/writer.py",
    "storage/compaction/maintenance.py",
    "storage/import_batches.py",
    "storage/imports.py",
    "storage/startup.py",
    "storage/store.py",
}
"""The modules below `web` in which, besides Twisted's log, its Deferreds may appear."""

IMPORTS = (ast.Import, ast.ImportFrom)
FOR_DEFERRED = {"twisted.internet.defer", "twisted.python.failure"}


def package_of(path: Path) -> str:
    return path.relative_to(ROOT).with_suffix("").parts[0]


@cache
def imports_of(path: Path) -> dict[str, bool]:
    """Return the names that a module imports, and whether at its top."""
    found: dict[str, bool] = {}
    nodes: list[tuple[ast.AST, bool]] = [(ast.parse(path.read_text("utf-8")), True)]
    while nodes:
        node, is_top = nodes.pop()
        names = [alias.name for alias in node.names] if isinstance(node, IMPORTS) else []
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            names = [f"{node.module}.{name}" for name in names]
        found |= {name: is_top or found.get(name, False) for name in names}
        is_top = is_top and not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        nodes += [
            (child, is_top)
            for child in ast.iter_child_nodes(node)
            if not isinstance(child, ast.expr)
        ]
    return found


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


STATISTICS = [
    path
    for path in MODULES
    if name_of(path).startswith("query/")
    and not name_of(path).startswith(("query/embedded/", "query/clickhouse/"))
]
"""The modules that say what a statistic means."""


def is_within(name: str, other: str) -> bool:
    """Return whether a name is another one, or inside that package or module."""
    return f"{name}.".startswith(f"{other}.")


def test_there_are_modules() -> None:
    assert {package_of(path) for path in MODULES} > set(MAY_IMPORT)
    assert {name_of(path) for path in STATISTICS} > {"query/rows.py", "query/reports.py"}


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_imports_go_downwards(path: Path) -> None:
    package = package_of(path)
    if package not in MAY_IMPORT:
        return
    ours = {
        name.split(".")[1] if name.split(".")[1] in _PACKAGES else ""
        for name in imports_of(path)
        if name.split(".")[0] == "medamad"
    }
    assert ours - {package} <= MAY_IMPORT[package]


@pytest.mark.parametrize("engine", ENGINES)
def test_few_modules_know_an_engine(engine: str) -> None:
    knowing = {
        name_of(path)
        for path in MODULES
        if any(is_within(name, engine) or is_within(engine, name) for name in imports_of(path))
    }
    homes = tuple(f"{home}/" for home in HOMES[engine])
    assert {name for name in knowing if not name.startswith(homes)} == ENGINES[engine]


@pytest.mark.parametrize("path", STATISTICS, ids=name_of)
def test_what_a_statistic_means_knows_little_of_the_store(path: Path) -> None:
    of_store = {name for name in imports_of(path) if is_within(name, "medamad.storage")}
    assert {name.rpartition(".")[0] for name in of_store} <= KNOWN_OF_STORE


_PACKAGES = {package_of(path) for path in MODULES}


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_libraries_stay_where_they_belong(path: Path) -> None:
    package = package_of(path)
    names = imports_of(path).keys()
    libraries = {".".join(name.split(".")[:2]) for name in names}
    roots = {name.split(".")[0] for name in libraries}
    if package != "storage":
        assert "lmdb" not in roots
    if package != "web":
        assert not {"klein", "werkzeug"} & roots - ({"werkzeug"} if package == "lookup" else set())
        assert "twisted.web" not in libraries
    if package in MAY_IMPORT.keys() - {"web", "daemon"} and name_of(path) not in PROTOCOLS:
        modules = {name.rpartition(".")[0] for name in names if name.startswith("twisted.")}
        assert modules - {"twisted.logger"} <= (
            FOR_DEFERRED if name_of(path) in DEFERRED else set()
        )


@pytest.mark.parametrize("name", sorted(DEFERRED | PROTOCOLS))
def test_what_may_import_more_does(name: str) -> None:
    names = imports_of(ROOT / name)
    assert any(one.startswith("twisted.") and "logger" not in one for one in names)


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_no_module_takes_the_reactor_at_its_top(path: Path) -> None:
    assert not imports_of(path).get("twisted.internet.reactor", False)
