"""Long answers that are being received: how much memory they may take."""

from collections import Counter
from collections.abc import Callable
from typing import Final

from attrs import define, field

from medamad.model.errors import TooMany, Unavailable

MOST_BYTES: Final = 64 << 20
"""How long all of them together may be, of guests and of all others. One alone may be longer."""
MOST_OF_A_NETWORK: Final = 32 << 20
"""How long those may be that one network receives, so that a slow reader does not take all. One
alone may be longer."""
_RETRY_AFTER_S: Final = 10


@define
class Unread:
    """Long answers from when they are made until they are sent, by the network that receives."""

    _bytes: Counter[bytes] = field(factory=Counter)

    def hold(self, network: bytes, length: int) -> Callable[[], None]:
        """Count an answer of so many bytes; gives what is to be called when it has been sent.

        Raises TooMany, Unavailable.
        """
        if network in self._bytes and self._bytes[network] + length > MOST_OF_A_NETWORK:
            raise TooMany(
                "too many long answers at once wait to be received there",
                retry_after=_RETRY_AFTER_S,
            )
        if self._bytes and self._bytes.total() + length > MOST_BYTES:
            raise Unavailable(
                "too many long answers at once wait to be received", retry_after=_RETRY_AFTER_S
            )
        held = Counter({network: length})
        self._bytes += held

        def sent() -> None:
            # A network that receives none any more is kept no longer.
            self._bytes -= held

        return sent
