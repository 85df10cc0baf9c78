"""`medamad run`: the daemon in the foreground."""

import gc
import os
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from typing import TYPE_CHECKING, Any, Final

from medamad.cli.support import add_data, add_listen, report_config_error
from medamad.config.schema import Config, ConfigError, load
from medamad.daemon.logs import begin_log

if TYPE_CHECKING:
    from medamad.daemon.service import Started
    from medamad.web.backend import Backend

EXAMPLES: Final = (
    ("medamad run", "listens on port 8080 of this machine, data in ./medamad-data"),
    ("medamad run --config medamad.toml --listen 8081", "another port of this machine"),
    ("medamad run --listen 0.0.0.0:8080 --listen [::]:8080", "for every network"),
)

_WITHOUT_TLS: Final = ("tcp", "tcp6", "unix")
"""The kinds of endpoints that never speak TLS."""


def configure(parser: ArgumentParser) -> None:
    """Add the arguments."""
    add_data(parser, of_service=False)
    add_listen(parser)


def run(arguments: Namespace) -> int:
    """Run the daemon until it is stopped."""

    def read() -> Config:
        return load(arguments.config).with_overrides(arguments.data, arguments.listen)

    try:
        config = read()
    except ConfigError as error:
        return report_config_error(error)
    return run_daemon(
        config, read_config=read, started=greet if sys.stdout.isatty() else _say_nothing
    )


def run_daemon(
    config: Config,
    *,
    read_config: Callable[[], Config],
    started: "Callable[[Started], None]",
    prepare: "Callable[[Backend], Awaitable[None]] | None" = None,
) -> int:
    """Run a daemon until it is stopped or cannot continue; return the exit status.

    `read_config` is called on SIGHUP, `started` once the daemon can be reached, and `prepare` is
    awaited before that.
    """
    # Until the daemon has started: collecting garbage between imports finds none, and takes long.
    gc.disable()
    # Of numpy's OpenBLAS, which is never called, but would start a thread for each processor.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    kinds = {text.partition(":")[0] for text in config.server.listen}
    with without_openssl() if kinds <= {*_WITHOUT_TLS} else nullcontext():
        from twisted.internet import reactor as installed  # noqa: PLC0415 - this installs it

        from medamad.daemon.process import make_daemon  # noqa: PLC0415 - imports Twisted's sockets
    reactor: Any = installed
    lines = begin_log(sys.stderr, os.environ, config.log)
    statuses = [0]
    daemon = make_daemon(
        config,
        reactor,
        read_config=read_config,
        leave_with=statuses.append,
        started=started,
        prepare=prepare,
        log_lines=lines,
        is_abandoned=_lost_terminal if sys.stdin.isatty() else _nothing_to_lose,
    )
    reactor.callWhenRunning(daemon.startService)
    reactor.addSystemEventTrigger("before", "shutdown", daemon.stopService)
    reactor.run()
    return statuses[-1]


@contextmanager
def without_openssl() -> Iterator[None]:
    """Import what is imported within as if OpenSSL were not installed.

    Where it is, Twisted's sockets import it, for TLS that begins on an open connection. That takes
    a tenth of the start and of the memory of an idle daemon, and is never used: our TLS is around
    the site, and imports OpenSSL itself.
    """
    if "OpenSSL" in sys.modules:
        yield
        return
    modules: dict[str, Any] = sys.modules
    modules["OpenSSL"] = None
    try:
        yield
    finally:
        del modules["OpenSSL"]


def _say_nothing(_started: "Started") -> None:
    """Print nothing: nobody is at a terminal."""


def greet(started: "Started") -> None:
    """Print where the daemon is, how to log in and what to put on a page."""
    with suppress(OSError):  # the terminal may close at any moment, which SIGHUP reports
        print("\n".join(_greeting(started)), flush=True)


def _greeting(started: "Started") -> Iterator[str]:
    login = started.first_login
    for url in started.urls[:1]:
        yield f"\nmedamad runs at {url}/"
        yield "Add a website there, then put this on its pages:"
        yield f'  <script defer src="{url}/script.js"></script>'
    if login is not None:
        yield f"Log in as {login.username} with the password {login.password}"
        if login.file is not None:
            yield f"(both are in {login.file} until you change the password)"
    elif started.login_file is not None:
        yield f"Log in as {started.username}; the password is in {started.login_file}"
    else:
        yield f"Log in as {started.username}; `medamad passwd` sets another password"
    yield "Ctrl-C stops it.\n"


def _lost_terminal() -> bool:
    try:
        os.tcgetpgrp(0)
    except OSError:
        return True
    return False


def _nothing_to_lose() -> bool:
    return False
