"""A daemon in this process, and a record of its calls when it starts and ends."""

from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import msgspec
import pytest
from attrs import define, evolve, field
from pytest_twisted import blockon
from twisted.internet import reactor
from twisted.internet.defer import Deferred

from medamad.config.schema import Config
from medamad.config.values import Endpoints, MapSize
from medamad.daemon.service import Daemon, Started
from medamad.daemon.systemd import Supervisor
from medamad.web.backend import Backend

GIVEN = {"MEDAMAD_USERNAME": "ada", "MEDAMAD_PASSWORD": "correct horse"}


def config_in(folder: Path, *listen: str) -> Config:
    config = Config()
    server = msgspec.structs.replace(
        config.server,
        data_dir=str(folder),
        listen=Endpoints(listen or ("tcp:0:interface=127.0.0.1",)),
    )
    store = msgspec.structs.replace(config.store, map_size=MapSize(64 << 20))
    return evolve(config, server=server, store=store)


@define
class RecordedCalls:
    """Records the calls of a daemon that has started or ended: `Started`, or an exit status."""

    first: "Deferred[Started | int]" = field(factory=Deferred)
    all: list[Started | int] = field(factory=list)

    def __call__(self, argument: Started | int) -> None:
        self.all.append(argument)
        if len(self.all) == 1:
            self.first.callback(argument)


def daemon_of(
    config: Config,
    calls: RecordedCalls,
    *,
    prepare: Callable[[Backend], Awaitable[None]] | None = None,
    read_config: Callable[[], Config] | None = None,
) -> Daemon:
    daemon = Daemon(
        config=config,
        reactor=reactor,
        environ=GIVEN,
        supervisor=Supervisor(),
        read_config=read_config or (lambda: config),
        ended=calls,
        started=calls,
        prepare=prepare,
    )
    _made.append(daemon)
    return daemon


_made: list[Daemon] = []


@pytest.fixture(autouse=True)
def stopped_daemons() -> Iterator[None]:
    """Stop the daemons that a test which failed has left: their threads would outlive pytest."""
    yield
    for daemon in _made:
        if daemon.running:
            blockon(daemon.stopService())
    _made.clear()
