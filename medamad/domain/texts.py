"""The characters that texts must not have."""

import re
from typing import Final

UNFIT: Final = re.compile(r"[\x00\ud800-\udfff]")
"""NUL, and halves of surrogate pairs: they are no characters of UTF-8."""
UNFIT_NAME: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
"""What a name of one line must not have: those, control characters and line separators."""
