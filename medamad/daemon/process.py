"""The daemon as this process runs it: with its environment, its supervisor and its reactor."""

import os
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

from twisted.internet.error import ReactorNotRunning

from medamad.config.schema import Config
from medamad.daemon import runtime
from medamad.daemon.logs import LogLines
from medamad.daemon.service import Daemon, Started, nothing
from medamad.daemon.systemd import Supervisor
from medamad.web.backend import Backend


def make_daemon(
    config: Config,
    reactor: Any,
    *,
    read_config: Callable[[], Config],
    leave_with: Callable[[int], object],
    started: Callable[[Started], None] = nothing,
    prepare: Callable[[Backend], Awaitable[None]] | None = None,
    is_abandoned: Callable[[], bool] = lambda: False,
    log_lines: LogLines | None = None,
) -> Daemon:
    """Make the daemon of this process; it stops the reactor when it cannot start or go on.

    `leave_with` is told the exit status before that; the rest is as of `Daemon`.
    """

    def settled(what: Started) -> None:
        runtime.settle()
        started(what)

    def ended(status: int) -> None:
        leave_with(status)
        reactor.callWhenRunning(reactor.stop)

    runtime.begin()
    runtime.allow()
    _stop_but_once(reactor)
    _keep_apart_from_the_clock(reactor)
    return Daemon(
        config=config,
        reactor=reactor,
        environ=os.environ,
        supervisor=Supervisor.from_environ(os.environ, os.getpid()),
        read_config=read_config,
        ended=ended,
        started=settled,
        prepare=prepare,
        is_abandoned=is_abandoned,
        log_lines=log_lines,
    )


def _stop_but_once(reactor: Any) -> None:
    """Have a reactor take it that it is stopped again, as by a second Ctrl-C, or at its own end."""
    stop = reactor.stop

    def stop_if_running() -> None:
        with suppress(ReactorNotRunning):
            stop()

    reactor.stop = stop_if_running


def _keep_apart_from_the_clock(reactor: Any) -> None:
    """Have a reactor that has not run yet go by a clock that nobody sets.

    Twisted goes by the system's: set back by a day, whatever was to happen soon would wait a day,
    the hits of that moment too.
    """
    if reactor.seconds is time.time and not reactor.getDelayedCalls():
        reactor.seconds = time.monotonic
