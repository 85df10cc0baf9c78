"""The key that the secrets of webhooks are derived from: in a file, never in the store."""

import hashlib
import hmac
import os
import secrets
from pathlib import Path
from typing import Final

from attrs import define

from medamad.daemon.messages import reason_of
from medamad.domain.errors import Unavailable

KEY_NAME: Final = "webhook.key"
"""The name of the file in the data directory, unless another one is configured."""
MIN_BYTES: Final = 32
_RETRY_AFTER_S: Final = 60


@define(eq=False)
class WebhookKey:
    """The key, read when it is needed; without a configured file, it is made then."""

    _configured: Path | None
    _data_dir: Path
    _known: bytes = b""

    def secret_of(self, url: str) -> str:
        """Return the secret of a webhook: no receiver can sign what another one accepts.

        Raises Unavailable if the file cannot be read or made.
        """
        return hmac.new(self._key(), url.encode(), hashlib.sha256).hexdigest()

    def _key(self) -> bytes:
        if not self._known:
            file = self._configured or self._data_dir / KEY_NAME
            try:
                if self._configured is None and not file.exists():
                    _make(file)
                self._known = _checked(file)
            except OSError as error:
                raise Unavailable(
                    f"the key of webhooks: {reason_of(error)}", retry_after=_RETRY_AFTER_S
                ) from error
        return self._known


def _checked(file: Path) -> bytes:
    key = file.read_bytes().strip()
    if len(key) < MIN_BYTES:
        raise Unavailable(
            f"the key of webhooks: {file}: expected at least {MIN_BYTES} bytes",
            retry_after=_RETRY_AFTER_S,
        )
    return key


def _make(file: Path) -> None:
    fresh = file.with_name(f".{file.name}.new")
    fresh.unlink(missing_ok=True)
    descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="ascii") as opened:
        opened.write(f"{secrets.token_hex(MIN_BYTES)}\n")
        opened.flush()
        os.fsync(opened.fileno())
    fresh.replace(file)
