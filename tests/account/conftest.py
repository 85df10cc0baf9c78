"""What the tests of the account share."""

from accounts_bench import accounts, bench

# pytest finds fixtures by their names here.
__all__ = ("accounts", "bench")
