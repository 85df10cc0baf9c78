import socket
from pathlib import Path

import pytest

from medamad.admin.protocol import SOCKET_NAME, reachable


@pytest.mark.parametrize("length", [1, 80, 93, 94, 95, 250])
def test_any_folder_can_have_a_socket(tmp_path: Path, length: int) -> None:
    room = length - len(str(tmp_path)) - 1
    folder = tmp_path if room < 1 else tmp_path / ("x" * min(room, 200))
    folder.mkdir(exist_ok=True)
    with reachable(folder) as path, socket.socket(socket.AF_UNIX) as listening:
        listening.bind(path)
    assert (folder / SOCKET_NAME).is_socket()


def test_a_missing_folder_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError), reachable(tmp_path / ("x" * 200)):
        pass
