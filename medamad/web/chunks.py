"""The chunks in which a body comes (RFC 9112 section 7.1): not more than are worth their work."""

from collections.abc import Callable
from typing import Final

from twisted.web.http import _ChunkedTransferDecoder

from medamad.model.errors import BadRequest

MOST_CHUNKS: Final = 256
"""How many a body of any length may have."""
BYTES_OF_A_FURTHER_ONE: Final = 256
"""Each so many bytes may come in one more."""

_NO_TRAILER_BYTES: Final = len(b"\r\n")


class Chunks(_ChunkedTransferDecoder):
    """Twisted's decoder of chunks, for as many as there may be, and without trailers."""

    def __init__(self, take: Callable[[bytes], None], finish: Callable[[bytes], None]) -> None:
        super().__init__(take, finish)
        # Trailers are nothing that we want, and Twisted does not check them.
        self._maxTrailerHeadersSize = _NO_TRAILER_BYTES
        self._room = MOST_CHUNKS * BYTES_OF_A_FURTHER_ONE

    def _dataReceived_CHUNK_LENGTH(self) -> bool:
        """Read the length of a chunk. Raises BadRequest when it is one too many."""
        is_read = super()._dataReceived_CHUNK_LENGTH()
        if is_read and self.length:
            self._room += self.length - BYTES_OF_A_FURTHER_ONE
            if self._room < 0:
                raise BadRequest(
                    f"body: expected at most {MOST_CHUNKS} chunks, "
                    f"and one more for each {BYTES_OF_A_FURTHER_ONE} bytes"
                )
        return is_read
