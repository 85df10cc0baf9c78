"""What the daemon answers to the operator's commands: the table of the requests."""

import os
from collections.abc import Sequence

from attrs import frozen

from medamad.build import VERSION
from medamad.operator.server import Handlers, Tell
from medamad.operator.status import State, Status
from medamad.web.backend import Backend


@frozen(kw_only=True)
class Desk:
    """What answers the commands. Its methods run in the reactor's thread."""

    backend: Backend
    started: int
    """When the daemon began to take requests, Unix seconds."""
    listening: Sequence[str]

    def handlers(self) -> Handlers:
        """Give the coroutine that answers each kind of request."""
        return {Status: self.status}

    async def status(self, _request: Status, _tell: Tell) -> State:
        """Tell the state of the daemon."""
        return State(
            version=VERSION,
            pid=os.getpid(),
            started=self.started,
            listening=tuple(self.listening),
            websites=len(self.backend.store.websites.all()),
        )
