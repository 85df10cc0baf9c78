"""Every command in README.md, CONTRIBUTING.md and docs/ works, in the order of the pages.

NEEDS says of each what it needs to be run. A command that no line of it matches fails the test.
"""

import re
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import duckdb
import pytest
from attrs import evolve, frozen
from markdown_it import MarkdownIt
from support.daemon import (
    HIT,
    PASSWORD,
    PATIENCE_S,
    USERNAME,
    Client,
    Daemon,
    finished_fork,
    free_port,
    running,
    until,
)
from support.transfer.day_files import Plausible

from medamad.build import shipped_file
from medamad.cli import COMMANDS, make_parser

ROOT: Final = Path(__file__).parents[2]
PAGES: Final = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
SHELLS: Final = ("bash", "console", "sh", "shell")
CRON: Final = re.compile(r"([\d*/,-]+ ){5}")
"""What a line of a crontab begins with."""
INLINE: Final = re.compile(
    r"(sudo )?(\S+/)?(medamad|mkdocs|pip|pytest|python3?|twistd?|packaging/\w+(\.py)?) ."
)
"""What a command within a sentence begins with."""
INSTALLED: Final = re.compile(r"^(sudo )?((\.venv|/opt/medamad)/bin/)?")
MISSING: Final = re.compile(r"arguments? .*\b(is|are) required")

COLLECTED: Final = ("--collect-only", "--quiet", "-p", "no:schemathesis")
"""How tests are found that are not run, without a plugin that takes long to import."""
LEFT_OUT: Final = (".*", "__pycache__", "dist", "node_modules")
PROGRAMS: Final = Path(sys.executable).parent
LOG_LINE: Final = '192.0.2.1 - - [10/Oct/2025:13:55:36 -0700] "GET / HTTP/1.0" 200 5\n'
OF_MEDAMA: Final = """
CREATE TABLE views (
    hostname TEXT, pathname TEXT, is_unique_user BOOLEAN, is_unique_page BOOLEAN,
    date_created TIMESTAMPTZ
);
INSERT INTO views VALUES ('example.com', '/', true, true, '2025-01-31T12:00:00Z');
"""


@frozen
class Command:
    """A command as a page has it, without the program's folder; `inline` is within a sentence."""

    page: str
    text: str
    inline: bool

    @property
    def words(self) -> list[str]:
        return shlex.split(self.text, comments=True)


@frozen
class Scene:
    """A folder with what the commands read, a daemon with two websites, and a login's token."""

    folder: Path
    daemon: Daemon
    token: str

    def made_real(self, word: str) -> str:
        """Return a word of a command with what is here instead of an owner's names."""
        now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        for written, meant in {
            "/etc/medamad/medamad.toml": str(shipped_file("medamad.toml")),
            "/var/lib/medamad": str(self.daemon.data),
            "/mnt/": f"{self.folder}/",
            "/var/log/nginx/": f"{self.folder}/",
            "http://localhost:8080": f"http://localhost:{self.daemon.port}",
            "https://stats.example.com": self.daemon.base,
            "medamad_…": self.token,
            '"admin"': f'"{USERNAME}"',
            '"password": "…"': f'"password": "{PASSWORD}"',
        }.items():
            word = word.replace(written, meant)
        return re.sub(r"\d{4}-\d\d-\d\dT09:30:00Z", now, word)


def lines_of(block: str) -> Iterator[str]:
    """Return the commands of a block, each with all of its lines."""
    text = ""
    for line in block.splitlines():
        text += line
        try:
            finished = not text.endswith("\\") and shlex.split(text, comments=True) is not None
        except ValueError:  # a quotation goes on
            finished = False
        if finished:
            yield text
            text = ""
        else:
            text = text.removesuffix("\\") + ("" if text.endswith("\\") else "\n")
    assert not text, text


def written_in(page: Path) -> Iterator[tuple[str, bool]]:
    """Return the command lines of a page, and whether they are within a sentence."""
    for token in MarkdownIt("commonmark").enable("table").parse(page.read_text("utf-8")):
        if token.type == "fence" and token.info in SHELLS:
            for line in lines_of(token.content):
                yield line, False
        elif token.type == "fence" and token.info == "crontab":
            for line in token.content.splitlines():
                yield CRON.sub("", line, 1), False
        for child in token.children or ():
            if child.type == "code_inline" and INLINE.match(child.content):
                yield child.content, True


def commands() -> Iterator[Command]:
    for page in PAGES:
        for line, inline in written_in(page):
            for each in line.split(" && "):
                if text := INSTALLED.sub("", each.strip()):
                    yield Command(page.name, text, inline)


# What a command needs.


def on_a_daemon(command: Command, scene: Scene) -> None:
    """Run it while a daemon is on the data directory."""
    if command.inline:
        return  # a name in a sentence: it is parsed
    typed = [scene.made_real(word) for word in command.words]
    if typed[0] == "medamad":
        ran = finished_fork(typed[1:], scene.folder)
    else:
        typed[1:1] = ["--fail", "--silent", "--show-error"]
        ran = subprocess.run(typed, cwd=scene.folder, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, (command, ran.stdout, ran.stderr)


def for_what_is_there(command: Command, scene: Scene) -> None:
    """Run it on a daemon, to end with the lines that are there."""
    once = command.text if command.inline else f"{command.text} --once"
    on_a_daemon(evolve(command, text=once), scene)


def on_an_empty_store(command: Command, scene: Scene) -> None:
    """Run it while another daemon is on a store with nothing but a website."""
    with running(scene.folder / "empty") as daemon:
        daemon.client().add_website("example.com")
        on_a_daemon(command, evolve(scene, daemon=daemon))


def when_it_is_stopped(command: Command, scene: Scene) -> None:
    """Run it when the daemon has stopped."""
    if scene.daemon.is_running and not command.inline:
        scene.daemon.stop()
    on_a_daemon(command, scene)


def until_it_is_stopped(command: Command, scene: Scene) -> None:
    """Start it, wait until it answers on its port, and stop it."""
    port = free_port()
    here = scene.folder / f"run-{port}"
    here.mkdir()
    (here / "medamad.toml").write_text(f'[server]\nlisten = "{port}"\n', "utf-8")
    program, *words = [re.sub(r"\b808\d\b", str(port), word) for word in command.words]
    typed = [str(PROGRAMS / program), *(re.sub("^FILE$", "medamad.toml", word) for word in words)]
    if "--config" not in typed and "--listen" not in typed:
        typed += ["--listen", str(port)]
    if "demo" in typed:
        typed += ["--days", "1", "--views", "500"]
    with (here / "output.txt").open("wb") as output:
        process = subprocess.Popen(typed, cwd=here, stdout=output, stderr=subprocess.STDOUT)

    def answers() -> bool:
        assert process.poll() is None, (command, (here / "output.txt").read_text("utf-8"))
        try:
            return Client(port).request("GET", "/api/event/ping").status == 200
        except OSError:
            return False

    try:
        until(answers)
        process.terminate()
        # twistd ends by the signal.
        assert process.wait(PATIENCE_S) in (0, -signal.SIGTERM), command
    finally:
        process.kill()
        process.wait()


def in_a_checkout(*more: str) -> Callable[[Command, Scene], None]:
    """Run it in a copy of the checkout, where it may write, with further arguments."""

    def run(command: Command, scene: Scene) -> None:
        copy = scene.folder / "checkout"
        if not copy.exists():
            shutil.copytree(ROOT, copy, ignore=shutil.ignore_patterns(*LEFT_OUT))
        program, *words = command.words
        typed = [PROGRAMS / program, *words, *more]
        ran = subprocess.run(typed, cwd=copy, capture_output=True, text=True, check=False)
        assert ran.returncode == 0, (command, ran.stdout[-2_000:], ran.stderr[-2_000:])

    return run


def with_chromium(command: Command, scene: Scene) -> None:
    """Run it where there is a browser; a program that takes a page's name, for one page."""
    if shutil.which("chromium"):
        in_a_checkout("no-page")(command, scene)


def too_long(command: Command, _scene: Scene) -> None:
    """Check that the script is there, and that it or what is beside it has the options."""
    script = ROOT / next(word for word in command.words if word.endswith(".py"))
    assert script.is_file()
    known = "".join(each.read_text("utf-8") for each in script.parent.glob("*.py"))
    for option in re.findall(r"(?<= )--[\w-]+", command.text):
        assert re.search(rf'"{option}",', known), (command, option)


def run_by(path: str, *texts: str) -> Callable[[Command, Scene], None]:
    """Say what else runs it, where it has these texts."""

    def check(command: Command, _scene: Scene) -> None:
        text = (ROOT / path).read_text("utf-8")
        for each in texts:
            assert each in text, (command, path, each)

    return check


def root_or_a_registry(command: Command, _scene: Scene) -> None:
    """Check how it is written: it would change this machine, or fetch something."""
    checked = subprocess.run(["bash", "-n", "-c", command.text], capture_output=True, check=False)
    assert checked.returncode == 0, (command, checked.stderr)


Need = Callable[[Command, Scene], None]
NEEDS: Final[tuple[tuple[str, Need], ...]] = (
    (r"medamad service ", root_or_a_registry),
    (r"medamad (run|demo)\b", until_it_is_stopped),
    (r"twistd? .*medamad\b", until_it_is_stopped),
    (r"medamad (check|restore)\b", when_it_is_stopped),
    (r"medamad import .* views.ndjson events.ndjson$", on_an_empty_store),  # of an earlier build
    (r"medamad cluster join", run_by("tests/support/clickhouse/daemon.py", '"join"')),
    (r"medamad cluster promote", run_by("tests/cluster/test_collectors.py", '"promote"')),
    (
        r"medamad cluster ",
        run_by("tests/cluster/test_daemon.py", '"init"', '"status"', '"load"', '"resend"'),
    ),
    (r"medamad follow ", for_what_is_there),
    (
        r"medamad (export .* --output (views|events).csv --data|import .* events.csv --data)",
        run_by("tests/cluster/test_daemon.py", '"export"', '"import"'),
    ),
    (r"medamad ", on_a_daemon),
    (r"curl ", on_a_daemon),
    (r"mkdocs build --strict$", run_by("tests/manual/test_site.py", '"build", "--strict"')),
    (r"pytest tests/", in_a_checkout(*COLLECTED)),
    (r"pytest -m slow$", in_a_checkout(*COLLECTED, "tests/whole")),
    (r"python tests/manual/test_claims\.py$", in_a_checkout()),
    (r"python tests/browser/(screenshots\.py FOLDER|test_pictures\.py)$", with_chromium),
    (r"(python )?(benchmarks/\w+|packaging/deb)\.py\b", too_long),
    (r"deb=\$\(.*packaging/deb\.py\)$", run_by("packaging/release", '"packaging/deb.py"')),
    (r"hatchling build$", run_by("tests/support/distributions.py", '"hatchling", "build"')),
    (r"packaging/release 1", run_by("tests/support/distributions.py", '"packaging/release"')),
    (r"node medamad/frontend/build/build\.mjs$", run_by("hatch_build.py", '"build.mjs"')),
    (r"node medamad/frontend/build/readme\.mjs$", in_a_checkout()),
    (r"\.ci/test$", run_by(".ci/run", "exec .ci/test")),
    (r"(ruff (check|format --check) \.|mypy)$", run_by(".ci/test", "ruff check . && ", "mypy")),
    (r"npm --prefix medamad/frontend (run check|test)$", run_by(".ci/test", "frontend run check")),
    (r'--8<-- "etc/certbot-deploy"$', run_by("tests/packaging/test_certbot_deploy.py", "HOOK")),
    (r"/etc/letsencrypt/renewal-hooks/deploy/medamad$", root_or_a_registry),
    (r"(apt-get|pip|python3 -m venv|docker|podman|git) ", root_or_a_registry),
    (r"(cat|cd|ln|mv|install|mkdir|printf|groupadd|systemctl) ", root_or_a_registry),
    (r"(psql|zip|website=\S+$)", root_or_a_registry),  # a database of another program's
)
"""The first pattern that a command begins with says what it needs."""


def need_of(command: Command) -> Need | None:
    return next((need for begins, need in NEEDS if re.match(begins, command.text)), None)


ALL: Final = list(dict.fromkeys(commands()))


def test_every_command_is_classified() -> None:
    assert [command for command in ALL if need_of(command) is None] == []
    assert {"README.md", "CONTRIBUTING.md", "install.md", "operating.md", "performance.md"} <= {
        command.page for command in ALL
    }


def test_nothing_is_classified_that_is_not_there() -> None:
    texts = [command.text for command in ALL]
    unused = [begins for begins, _ in NEEDS if not any(re.match(begins, each) for each in texts)]
    assert unused == []


def test_every_call_of_medamad_is_valid(capsys: pytest.CaptureFixture[str]) -> None:
    """Those within a sentence may leave out arguments that are required."""
    parser = make_parser(COMMANDS)
    seen = set()
    for command in ALL:
        program, *words = command.words
        if program != "medamad":
            continue
        try:
            seen.add(parser.parse_args(words).command)
        except SystemExit as ended:
            said = capsys.readouterr().err
            asked_for_help = ended.code == 0
            assert asked_for_help or (command.inline and MISSING.search(said)), (command, said)
    assert {"run", "demo", "check-config", "status", "export", "import", "service"} <= seen


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    (tmp_path / "access.log").write_text(LOG_LINE, "utf-8")
    Plausible().zip(tmp_path / "export.zip")
    (tmp_path / "medama").mkdir()
    with duckdb.connect(str(tmp_path / "medama" / "analytics.db")) as database:
        database.execute(OF_MEDAMA)
    with running(tmp_path) as daemon:
        client = daemon.client()
        client.add_website("example.com")
        client.add_website("example.org")
        assert client.request("POST", "/api/event/hit", HIT | {"d": {"a": "b"}}).status == 204
        answer = client.request("POST", "/api/user/tokens", {"name": "all", "scope": "full"})
        assert answer.status == 201, answer
        yield Scene(tmp_path, daemon, answer.json["token"])


@pytest.mark.daemon
@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
def test_every_command_works(scene: Scene) -> None:
    once = {each.text: each for each in sorted(ALL, key=lambda each: not each.inline)}
    # In the order of the pages, but those that need the daemon stopped are last.
    chosen = [each for each in ALL if each is once[each.text]]
    for command in sorted(chosen, key=lambda each: need_of(each) is when_it_is_stopped):
        need = need_of(command)
        assert need is not None, command
        need(command, scene)
    assert not scene.daemon.is_running
    assert (scene.folder / "views.csv").read_text("utf-8").count("\n") == 2
