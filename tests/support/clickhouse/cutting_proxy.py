"""A TCP proxy that cuts connections: in the middle of a request, or of a response."""

import random
import socket
import threading
from contextlib import suppress

from attrs import define, field


@define(eq=False)
class CuttingProxy:
    """Passes connections on to a port of this machine. `cuts` says what share of them is cut."""

    target: int
    random: random.Random
    cuts: float = 0.0
    cut: int = 0
    """How many connections have been cut."""
    _listener: socket.socket = field(init=False)

    def __attrs_post_init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def port(self) -> int:
        port: int = self._listener.getsockname()[1]
        return port

    def close(self) -> None:
        self._listener.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        with client:
            try:
                server = socket.create_connection(("127.0.0.1", self.target))
            except OSError:
                return
            with server:
                towards = threading.Thread(target=self._pass_on, args=(client, server), daemon=True)
                towards.start()
                self._pass_on(server, client)
                for each in (client, server):
                    with suppress(OSError):
                        each.shutdown(socket.SHUT_RDWR)
                towards.join()

    def _pass_on(self, source: socket.socket, sink: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(1 << 16):
                if self.random.random() < self.cuts:
                    self.cut += 1
                    sink.sendall(data[: self.random.randrange(len(data))])
                    break
                sink.sendall(data)
        for each in (source, sink):
            with suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
