"""Make the daemon of this process, with its environment, supervisor and reactor."""

import os
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

from twisted.internet.error import ReactorNotRunning

from medamad.config.schema import Config
from medamad.daemon import runtime
from medamad.daemon.logs import LogLines
from medamad.daemon.service import Daemon, Started, ignore_started
from medamad.daemon.systemd import Supervisor
from medamad.web.backend import Backend


def make_daemon(
    config: Config,
    reactor: Any,
    *,
    read_config: Callable[[], Config],
    leave_with: Callable[[int], object],
    started: Callable[[Started], None] = ignore_started,
    prepare: Callable[[Backend], Awaitable[None]] | None = None,
    is_abandoned: Callable[[], bool] = lambda: False,
    log_lines: LogLines | None = None,
) -> Daemon:
    """Make the daemon of this process; it stops the reactor if it cannot start or continue.

    `leave_with` gets the exit status before that; the other arguments are those of `Daemon`.
    """

    def loaded(_result: object) -> None:
        runtime.freeze_heap()

    def ended(status: int) -> None:
        leave_with(status)
        reactor.callWhenRunning(reactor.stop)

    runtime.begin()
    runtime.raise_file_limit()
    _allow_repeated_stop(reactor)
    _use_monotonic_clock(reactor)
    return Daemon(
        config=config,
        reactor=reactor,
        environ=os.environ,
        supervisor=Supervisor.from_environ(os.environ, os.getpid()),
        read_config=read_config,
        ended=ended,
        started=started,
        loaded=loaded,
        prepare=prepare,
        is_abandoned=is_abandoned,
        log_lines=log_lines,
    )


def _allow_repeated_stop(reactor: Any) -> None:
    """Make a second stop of the reactor harmless, as by another Ctrl-C."""
    stop = reactor.stop

    def stop_if_running() -> None:
        with suppress(ReactorNotRunning):
            stop()

    reactor.stop = stop_if_running


def _use_monotonic_clock(reactor: Any) -> None:
    """Make a reactor that has not run yet use a monotonic clock.

    Twisted uses the system's clock: if that is set back by a day, every delayed call waits a day,
    including the commits of hits.
    """
    if reactor.seconds is time.time and not reactor.getDelayedCalls():
        reactor.seconds = time.monotonic
