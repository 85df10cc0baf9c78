"""The daemon under `twistd` and `twist`: their options, and the service they run."""

import atexit
import os
import sys
from pathlib import Path

from twisted.python import usage

from medamad.config.schema import EXIT_STATUS, Config, ConfigError, load
from medamad.daemon.messages import complain
from medamad.daemon.process import make_daemon
from medamad.daemon.service import Daemon


class Options(usage.Options):
    """The options of `medamad run`."""

    optParameters = (
        ("config", "c", None, "the configuration file", Path),
        ("data", "d", None, "the data directory; overrides the configuration", Path),
    )

    def __init__(self) -> None:
        super().__init__()
        self["listen"] = []

    def opt_listen(self, endpoint: str) -> None:
        """Where to listen, such as "tcp:8080"; overrides the configuration; may be repeated."""
        self["listen"].append(endpoint)


def makeService(options: Options) -> Daemon:
    """Make the daemon. Exit if the configuration cannot be used."""
    from twisted.internet import reactor  # noqa: PLC0415 - importing it installs it

    def read() -> Config:
        return load(options["config"]).with_overrides(options["data"], options["listen"])

    try:
        config = read()
    except ConfigError as error:
        complain(str(error), sys.stderr, os.environ)
        sys.exit(EXIT_STATUS)

    def leave_with(status: int) -> None:
        # Neither twistd nor twist passes on the exit status of a service.
        atexit.register(_leave, status)

    return make_daemon(config, reactor, read_config=read, leave_with=leave_with)


def _leave(status: int) -> None:
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)
