from collections.abc import Callable
from io import BytesIO
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

import pytest

from medamad.domain.errors import BadRequest
from medamad.transfer.input_files import check_member, open_zip


def zipped(**members: bytes) -> bytes:
    file = BytesIO()
    with ZipFile(file, "w", ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return file.getvalue()


def read(content: bytes) -> dict[str, bytes]:
    with open_zip(BytesIO(content)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def larger(content: bytes) -> bytes:
    """Change the archive's directory to state a size of nearly 4 GiB."""
    at = content.index(b"PK\x01\x02")
    return content[: at + 24] + b"\x00\x00\x00\xf0" + content[at + 28 :]


def locked(content: bytes) -> bytes:
    at = content.index(b"PK\x01\x02")
    return content[: at + 8] + b"\x01" + content[at + 9 :]


def strange(content: bytes) -> bytes:
    """Change the archive to name an unknown method of compression."""
    at = content.index(b"PK\x01\x02")
    return content[: at + 10] + b"\x63" + content[at + 11 :]


def test_members_are_read() -> None:
    members = {"a": b"a" * (1 << 20), "b": b""}
    assert read(zipped(**members)) == members


@pytest.mark.parametrize(
    ("broken", "reason"),
    [
        (lambda content: content[:-9], "not a valid zip archive"),
        (lambda content: content[:33] + b"???" + content[36:], "not a valid zip archive"),
        (larger, "a: expected a compression ratio of at most 400"),
        (locked, "a: expected a file without a password"),
        (strange, "not a valid zip archive"),
    ],
)
def test_bad_archives_are_rejected(broken: Callable[[bytes], bytes], reason: str) -> None:
    with pytest.raises(BadRequest, match=reason):
        read(broken(zipped(a=b"here it is")))


def test_members_larger_than_4_gib_are_rejected() -> None:
    member = ZipInfo("a")
    member.file_size, member.compress_size = (4 << 30) + 1, 1 << 30
    with pytest.raises(BadRequest, match="a: expected at most 4294967296 bytes, got 4294967297"):
        check_member(member)


def test_too_many_members_are_rejected() -> None:
    with pytest.raises(BadRequest, match="expected a zip archive of at most 10000 files"):
        read(zipped(**{str(n): b"" for n in range(10_001)}))
