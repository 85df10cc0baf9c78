"""TLS without sockets: what is decrypted is delivered, and what is encrypted is sent, at once."""

from pathlib import Path

import pytest
from support.certificates import Authority
from support.tls_in_memory import Client, EchoSite, Options
from support.web.client import Kernel

from medamad.web.server.endpoints import Certificate
from medamad.web.server.tls import TLSFactory


@pytest.fixture
def factory(tmp_path: Path) -> TLSFactory:
    certificate = Certificate(Options(Authority(tmp_path).folder), "")
    return TLSFactory(certificate, isClient=False, wrappedFactory=EchoSite())


@pytest.mark.parametrize("at_once", [100_000, 100])
def test_data_that_follows_the_handshake_is_delivered(factory: TLSFactory, at_once: int) -> None:
    client = Client(factory)
    while data := client.shake():
        for begin in range(0, len(data), at_once):
            client.push(data[begin : begin + at_once])
    client.push(client.records(b"hello"))
    assert client.echo.received == [b"hello"]
    client.came.write(client.wire.value())
    assert client.tls.read() == b"hello"


def test_what_is_written_is_sent_at_once_and_in_order(factory: TLSFactory) -> None:
    kernel = Kernel(100_000)
    client = Client(factory, wire=kernel).shake_hands()
    kernel.room = 100
    texts = [bytes([number]) * 60 for number in range(5)]
    client.push(client.records(*texts))
    # No turn of the reactor has come since.
    client.came.write(kernel.value() + kernel.waits)
    assert len(kernel.value()) == 100
    assert b"".join(client.tls.read(100) for _ in texts) == b"".join(texts)
