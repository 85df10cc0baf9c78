"""The least that a twisted.web server can do with a hit: read it and return 204."""

import sys
from typing import Any

from twisted.internet import reactor as installed
from twisted.web.resource import Resource
from twisted.web.server import Request, Site


class NoContent(Resource):
    """Responds to every POST with 204."""

    isLeaf = True

    def render_POST(self, request: Request) -> bytes:
        """Return an empty body."""
        request.content.read()
        request.setResponseCode(204)
        return b""


class Quiet(Site):
    """Writes no access log."""

    def log(self, request: Request) -> None:
        """Write nothing."""


reactor: Any = installed
reactor.listenTCP(int(sys.argv[1]), Quiet(NoContent()), interface="127.0.0.1")
reactor.callWhenRunning(print, "ready", flush=True)
reactor.run()
