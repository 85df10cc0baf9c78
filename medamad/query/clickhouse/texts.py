"""The texts of websites in a cluster, and codes for them that are this process's own."""

from collections.abc import Callable, Iterable, Sequence
from threading import Lock
from typing import Final

import numpy as np
from attrs import define, field, frozen
from numpy.typing import NDArray

from medamad.clickhouse.client import Client
from medamad.domain.dimensions import Dimension
from medamad.storage.dictionary.decode import CodeTexts, TextCache, TextList

_CLOCKS_S: Final = 3_600
"""How far the clocks of servers, which say when a text was added, may be apart."""
_MAX_TEXTS: Final = 5_000_000
"""Beyond so many, the texts of the website that was read longest ago are dropped."""


@define(eq=False)
class _Known:
    """The texts of a dimension, which only become more, and their codes."""

    texts: TextList = field(factory=TextList)
    codes: dict[str, int] = field(factory=dict)
    added_s: int = 0
    """When the latest that was read was added."""
    lock: Lock = field(factory=Lock)

    def add(self, texts: Iterable[str]) -> None:
        codes = self.codes
        for text in texts:
            if text not in codes:
                self.texts.append(text)
                codes[text] = len(codes)


@define(eq=False)
class _Website:
    cache: TextCache = field(factory=TextCache)
    by_dimension: dict[Dimension, _Known] = field(factory=dict)

    @property
    def size(self) -> int:
        return sum(len(known.texts) for known in list(self.by_dimension.values()))


@define(eq=False)
class TextsOfWebsites:
    """The texts of websites, cached from one request to the next. For any thread."""

    client: Client
    _websites: dict[int, _Website] = field(factory=dict)
    _lock: Lock = field(factory=Lock)

    def of(self, website: int, check: Callable[[], None]) -> "WebsiteTexts":
        """Return the texts of a website for one request, which `check` ends."""
        with self._lock:
            found = self._websites.pop(website, None) or _Website()
            self._websites[website] = found
            total = sum(each.size for each in self._websites.values())
            for number in list(self._websites)[:-1]:
                if total <= _MAX_TEXTS:
                    break
                total -= self._websites.pop(number).size
        return WebsiteTexts(self.client, website, found, check)


@frozen(eq=False)
class WebsiteTexts(CodeTexts):
    """The texts of a website in one request, in which each dimension is read once."""

    client: Client
    website: int
    _cached: _Website
    _check: Callable[[], None]
    _read: set[Dimension] = field(factory=set)

    @property
    def cache(self) -> TextCache:
        """What queries have computed from the texts."""
        return self._cached.cache

    def __call__(self, dimension: Dimension, /) -> Sequence[str]:
        """Return the texts of a dimension, at least up to the greatest code in what was read."""
        return self._known(dimension).texts

    def codes(self, dimension: Dimension, texts: Sequence[str]) -> NDArray[np.int64]:
        """Return the codes of some texts. One that was added since gets a new one."""
        known = self._known(dimension)
        try:
            found = [known.codes[text] for text in texts]
        except KeyError:
            with known.lock:
                known.add(texts)
            found = [known.codes[text] for text in texts]
        return np.array(found, np.int64)

    def _known(self, dimension: Dimension) -> _Known:
        known = self._cached.by_dimension.setdefault(dimension, _Known())
        if dimension not in self._read:
            with known.lock:
                self._update(dimension, known)
            self._read.add(dimension)
        return known

    def _update(self, dimension: Dimension, known: _Known) -> None:
        """Read the texts that were added since they were last read."""
        found = self.client.query(
            f"SELECT text, toUnixTimestamp(added) AS added_s FROM {self.client.table('texts')}"
            " WHERE website = {website:UInt32} AND dimension = {dimension:UInt8}"
            " AND added >= toDateTime({since:UInt32})",
            parameters={
                "website": self.website,
                "dimension": int(dimension),
                "since": max(known.added_s - _CLOCKS_S, 0),
            },
            check=self._check,
        )
        if dimension is not Dimension.PROPERTY:
            known.add([""])
        if found:
            known.add(found["text"])
            known.added_s = max(known.added_s, int(found["added_s"].max(initial=0)))
