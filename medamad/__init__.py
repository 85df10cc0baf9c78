"""medamad: self-hosted, cookie-free web analytics."""

__version__ = "1.0.0rc1"
