"""A proxy that speaks TLS 1.3 before a server, whose build here has none."""

import socket
import ssl
import threading
from contextlib import suppress
from pathlib import Path

from attrs import define, field


@define(eq=False)
class TlsProxy:
    """Passes connections on to a port of this machine, decrypted."""

    target: int
    certificates: Path
    _listener: socket.socket = field(init=False)
    _context: ssl.SSLContext = field(init=False)

    def __attrs_post_init__(self) -> None:
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._context.minimum_version = ssl.TLSVersion.TLSv1_3
        folder = self.certificates
        self._context.load_cert_chain(folder / "fullchain.pem", folder / "privkey.pem")
        self._listener = socket.create_server(("127.0.0.1", 0))
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def url(self) -> str:
        return f"https://localhost:{self._listener.getsockname()[1]}"

    def close(self) -> None:
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        with (
            suppress(OSError),
            self._context.wrap_socket(client, server_side=True) as encrypted,
            socket.create_connection(("127.0.0.1", self.target)) as server,
        ):
            answering = threading.Thread(target=_pass_on, args=(server, encrypted), daemon=True)
            answering.start()
            _pass_on(encrypted, server)
            answering.join()


def _pass_on(source: socket.socket, sink: socket.socket) -> None:
    with suppress(OSError):
        while data := source.recv(1 << 16):
            sink.sendall(data)
    # The one who waits for the other direction finds it closed.
    for each in (source, sink):
        with suppress(OSError):
            each.shutdown(socket.SHUT_RDWR)
