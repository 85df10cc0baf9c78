"""What a token or a share link may be called."""

import re
from typing import Final

from medamad.model.errors import BadRequest

MAX_NAME: Final = 64

_UNFIT: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")


def check_name(text: str) -> str:
    """Give a name without the white space around it. Raises BadRequest: 1 to 64 characters."""
    name = text.strip()
    if not 1 <= len(name) <= MAX_NAME:
        raise BadRequest(f"name: expected 1 to {MAX_NAME} characters, got {len(name)}")
    if _UNFIT.search(name):
        raise BadRequest("name: expected text of one line, without control characters")
    return name
