from pathlib import Path

import pytest

from medamad.accounts.first_login import FirstLogin
from medamad.cli.run import greet
from medamad.daemon.service import Started

URL = "http://localhost:8080"
FILE = Path("/data/first-login.txt")


@pytest.mark.parametrize(
    ("first_login", "login_file", "lines"),
    [
        (
            FirstLogin("admin", "secret", FILE),
            FILE,
            [
                "Log in as admin with the password secret",
                f"(both are in {FILE} until you change the password)",
            ],
        ),
        (FirstLogin("ada", "given", None), None, ["Log in as ada with the password given"]),
        (None, FILE, [f"Log in as admin; the password is in {FILE}"]),
        (None, None, ["Log in as admin; `medamad passwd` sets another password"]),
    ],
)
def test_it_explains_how_to_log_in(
    capsys: pytest.CaptureFixture[str],
    first_login: FirstLogin | None,
    login_file: Path | None,
    lines: list[str],
) -> None:
    greet(Started((URL,), first_login, "admin", login_file))
    assert capsys.readouterr().out.splitlines() == [
        "",
        f"medamad runs at {URL}/",
        "Add a website there, then put this on its pages:",
        f'  <script defer src="{URL}/script.js"></script>',
        *lines,
        "Ctrl-C stops it.",
        "",
    ]
