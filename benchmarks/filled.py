"""The daemon with 250,000 invented views of one website over 90 days. For questions.py."""

import os
import time
from argparse import ArgumentParser

from medamad.commands.configured import add_data, add_listen, read_config
from medamad.commands.run import run_daemon
from medamad.config import Config
from medamad.demo.filling import fill
from medamad.demo.sites import SITES
from medamad.demo.traffic import Plan
from medamad.service import nothing
from medamad.web.backend import Backend


def main() -> int:
    """Fill a store and serve it."""
    parser = ArgumentParser()
    add_data(parser)
    add_listen(parser)
    arguments = parser.parse_args()

    def read() -> Config:
        return read_config(arguments.config, arguments.data, arguments.listen)

    async def prepare(backend: Backend) -> None:
        plan = Plan(
            until_ms=int(time.time() * 1000),
            days=int(os.environ.get("DAYS", "90")),
            views=int(os.environ.get("VIEWS", "250000")),
        )
        await fill(backend.store, plan, SITES[:1])

    return run_daemon(read(), read_config=read, started=nothing, prepare=prepare)


if __name__ == "__main__":
    raise SystemExit(main())
