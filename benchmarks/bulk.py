"""Past traffic as columns, and its import, both from the tests' support."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from support.storage.bulk_loads import Bulk, add, begin

__all__ = ["Bulk", "add", "begin"]
