import pytest

from medamad.build import shipped_file
from medamad.lookup.referrers import SpamHosts, read_hosts


@pytest.mark.parametrize(
    ("host", "is_spam"),
    [
        ("spam.example", True),
        ("www.spam.example", True),
        ("a.b.spam.example", True),
        ("SPAM.example", True),
        ("notspam.example", False),
        ("example", False),
        ("spam.example.com", False),
        ("other.test", True),
        ("", False),
        (None, False),
    ],
)
def test_a_spam_host_includes_its_subdomains(host: str | None, is_spam: bool) -> None:
    assert (host in SpamHosts(["Spam.example", "www.other.test"])) is is_spam


def test_hosts_are_read_from_lines() -> None:
    text = "# comment\n\nSpam.example  # why\n  bücher.example\n"
    assert read_hosts(text) == ["spam.example", "xn--bcher-kva.example"]


@pytest.mark.parametrize("line", ["http://spam.example/", "192.0.2.1", "org", "Com."])
def test_a_line_that_is_not_a_host_is_reported(line: str) -> None:
    with pytest.raises(ValueError, match="line 2: expected a hostname"):
        read_hosts(f"spam.example\n{line}\n")


def test_the_shipped_hosts_are_valid_and_distinct() -> None:
    hosts = read_hosts(shipped_file("spam.txt").read_text("utf-8"))
    assert len(hosts) == len(set(hosts)) > 100
    assert "www.semalt.com" in SpamHosts(hosts)
    assert "google.com" not in SpamHosts(hosts)
