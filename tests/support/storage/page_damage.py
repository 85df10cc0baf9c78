"""Changes to a store's file, as a failing disk or a careless hand makes them."""

import random
import struct
from pathlib import Path

PAGE = 4096
_KINDS = ("bit", "bit", "bit", "bit", "node", "node", "bytes", "zeros", "swapped", "copied", "cut")
_HEADER = struct.Struct("<QHHHH")
"""Number of the page, nothing, what it is, where its list of nodes ends, where they begin."""
_OF_NODES = (1, 2)
_NODE = struct.Struct("<HHHH")
"""Size or page in two parts, flags, size of the key."""


def change(file: Path, rng: random.Random) -> str:
    """Change something of what the file uses; returns what."""
    content = bytearray(file.read_bytes())
    pages = len(content.rstrip(b"\0")) // PAGE + 1
    kind, page = rng.choice(_KINDS), rng.randrange(pages)
    places = range(page * PAGE, (page + 1) * PAGE)
    # A page is half empty: what is not 0 is something for sure, and what is 0 may be.
    at = rng.choice([place for place in places if content[place]] if rng.random() < 0.5 else places)
    first = slice(page * PAGE, (page + 1) * PAGE)
    if kind == "node":
        at = rng.choice(_nodes(content)) + rng.randrange(_NODE.size)
        page = at // PAGE
    if kind in {"bit", "node"}:
        content[at] ^= 1 << rng.randrange(8)
    elif kind == "bytes":
        content[at : at + 9] = rng.randbytes(9)
    elif kind == "zeros":
        size = rng.choice((512, PAGE))
        content[at - at % size : at - at % size + size] = bytes(size)
    elif kind == "cut":
        del content[at:]
    else:
        other = rng.randrange(pages)
        second = slice(other * PAGE, (other + 1) * PAGE)
        held = content[first]
        content[first] = content[second]
        if kind == "swapped":
            content[second] = held
    file.write_bytes(content)
    return f"{kind}, page {page}, byte {at % PAGE}"


def _nodes(content: bytes) -> list[int]:
    """Return where the nodes begin."""
    nodes = []
    for begin in range(2 * PAGE, len(content) - PAGE + 1, PAGE):
        own, _, kind, end, _ = _HEADER.unpack_from(content, begin)
        if own == begin // PAGE and kind in _OF_NODES:
            places = range(begin + _HEADER.size, begin + end, 2)
            nodes += [begin + struct.unpack_from("<H", content, place)[0] for place in places]
    return nodes
