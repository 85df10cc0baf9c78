"""The texts behind the codes, found by code: lists in memory, as long as somebody asks for them."""

from collections.abc import Iterable, Sequence
from threading import Lock
from typing import Final

from attrs import define, field
from twisted.logger import Logger

from medamad.model.dimensions import Dimension
from medamad.model.errors import NotFound
from medamad.store.environment import Environment, Txn
from medamad.store.errors import Damaged
from medamad.store.growing import Growing
from medamad.store.names import NAME_KEY, NAMES_OF, code_key, name_place, split_name

DAMAGED: Final = "(damaged)"
"""What is shown in the place of a text that is not what was written."""
_NAMES_AT_ONCE: Final = 50_000
_UNASKED: Final = 40
_log: Final = Logger()


@define(eq=False)
class Texts:
    """One website's texts: lists by code, read from the store when they are asked for.

    Used by any thread. A list only ever grows; one that is let go of is read anew.
    """

    _environment: Environment
    _website: int
    is_deleted: bool = False
    unasked: int = 0
    """How often `keep_within` has looked at these texts since somebody asked for them."""
    _lists: dict[Dimension, Growing] = field(factory=dict)
    _lock: Lock = field(factory=Lock)

    def __call__(self, dimension: Dimension, /) -> Sequence[str]:
        """Give the texts of a dimension by code. Raises NotFound when the website is deleted."""
        with self._lock:
            self.unasked = 0
            if self.is_deleted:
                raise _deleted()
            is_new = dimension not in self._lists
            texts = self._lists.setdefault(dimension, Growing())
            while self._read_some(dimension, texts):
                pass
            if is_new:
                self._fill_up(dimension, texts)
            return texts

    def size(self) -> int:
        """Give about how many bytes of memory the lists take."""
        return sum(texts.nbytes for texts in list(self._lists.values()))

    def let_go(self) -> None:
        """Let go of the lists, unless they are being read; questions keep what they hold."""
        if not self._lock.acquire(blocking=False):
            return
        try:
            pieces = [piece for texts in self._lists.values() for piece in texts.pieces()]
            self._lists.clear()
        finally:
            self._lock.release()
        # To free a million texts at once would hold all threads up.
        while pieces:
            pieces.pop()

    def _fill_up(self, dimension: Dimension, texts: Growing) -> None:
        """Put something in the place of the last texts, if they are not there."""
        prefix = NAMES_OF.pack(self._website, dimension)
        database = self._environment.databases.codes
        greatest = b""
        with self._environment.reading() as txn, txn.cursor(db=database) as cursor:
            found = cursor.set_range(prefix)
            while found and cursor.key().startswith(prefix):
                greatest = max(greatest, cursor.value())
                found = cursor.next()
            missing = int.from_bytes(greatest, "big") + 1 - len(texts) if greatest else 0
            if 0 < missing <= txn.stat(database)["entries"]:
                _log.error("texts are missing: {place}", place=name_place(prefix + greatest))
                texts.extend([DAMAGED] * missing)

    def _read_some(self, dimension: Dimension, texts: Growing) -> bool:
        """Read the next names, in a short transaction; returns whether there may be more."""
        prefix = NAMES_OF.pack(self._website, dimension)
        database = self._environment.databases.names
        with self._environment.reading() as txn, txn.cursor(db=database) as cursor:
            found = cursor.set_range(NAME_KEY.pack(self._website, dimension, len(texts)))
            for _ in range(_NAMES_AT_ONCE):
                if not found or not cursor.key().startswith(prefix):
                    return False
                # Where names were removed there is a gap, of codes that nothing has.
                texts.extend([DAMAGED] * (NAME_KEY.unpack(cursor.key())[2] - len(texts)))
                texts.append(self._sound_text(txn, dimension, *cursor.item()))
                found = cursor.next()
        return True

    def _sound_text(self, txn: Txn, dimension: Dimension, key: bytes, value: bytes) -> str:
        """Give a text, if it is the one that its code was given to."""
        try:
            _, text = split_name(key, value)
            hashed = code_key((self._website, dimension), text)
            if txn.get(hashed, db=self._environment.databases.codes) == key[NAMES_OF.size :]:
                return text
        except Damaged:
            pass
        _log.error("a text is damaged and not shown: {place}", place=name_place(key))
        return DAMAGED


def keep_within(bound: int, held: Iterable[Texts]) -> None:
    """Let go of texts while they take more than so many bytes: those unasked for longest first.

    To be called now and then; those that were asked for between its last 40 calls stay.
    """
    idle, total = [], 0
    for texts in held:
        total += texts.size()
        if texts.unasked >= _UNASKED:
            idle.append(texts)
        texts.unasked += 1
    for texts in sorted(idle, key=lambda texts: texts.unasked, reverse=True):
        if total <= bound:
            break
        total -= texts.size()
        texts.let_go()


def _deleted() -> NotFound:
    return NotFound("hostname: the website has been deleted")
