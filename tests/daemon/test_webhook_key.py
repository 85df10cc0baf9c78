import hashlib
import hmac
from pathlib import Path

import pytest

from medamad.config.schema import AlertsSection, Config
from medamad.config.settings import webhook_key_file
from medamad.config.values import PathText
from medamad.daemon.webhook_key import WebhookKey
from medamad.domain.errors import Unavailable

KEY = "k" * 32


def test_a_key_is_made_once_and_kept(tmp_path: Path) -> None:
    secret = WebhookKey(None, tmp_path).secret_of("https://a.example/")
    assert WebhookKey(None, tmp_path).secret_of("https://a.example/") == secret
    assert WebhookKey(None, tmp_path).secret_of("https://b.example/") != secret
    assert [path.name for path in tmp_path.iterdir()] == ["webhook.key"]


def test_a_configured_key_is_read(tmp_path: Path) -> None:
    file = tmp_path / "key"
    file.write_text(f"{KEY}\n")
    expected = hmac.new(KEY.encode(), b"https://a.example/", hashlib.sha256).hexdigest()
    assert WebhookKey(file, tmp_path).secret_of("https://a.example/") == expected


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (None, "the key of webhooks: {file}: No such file or directory"),
        ("short\n", "the key of webhooks: {file}: expected at least 32 bytes"),
    ],
)
def test_a_configured_key_that_cannot_be_used_is_not_replaced(
    tmp_path: Path, content: str | None, reason: str
) -> None:
    file = tmp_path / "key"
    if content is not None:
        file.write_text(content)
    with pytest.raises(Unavailable) as refused:
        WebhookKey(file, tmp_path).secret_of("https://a.example/")
    assert str(refused.value) == reason.format(file=file)
    assert not (tmp_path / "webhook.key").exists()


def test_where_the_key_is(tmp_path: Path) -> None:
    configured = Config(alerts=AlertsSection(webhook_key_file=PathText(str(tmp_path / "key"))))
    environ = {"CREDENTIALS_DIRECTORY": str(tmp_path)}
    assert webhook_key_file(configured, environ) == tmp_path / "key"
    assert webhook_key_file(Config(), {}) is None
    assert webhook_key_file(Config(), environ) is None
    (tmp_path / "medamad.webhook-key").write_text(KEY)
    assert webhook_key_file(Config(), environ) == tmp_path / "medamad.webhook-key"
