"""What the opt-out says in English, and where it is."""

COUNTED = "Visits to this website from this browser are counted."
IGNORED = "Visits to this website from this browser are not counted."
REFUSED = "This browser does not let this website keep a choice. Visits from it are counted."


def opt_out(base: str) -> str:
    """Return the element of a daemon."""
    return f'<script src="{base}/api/event/opt-out.js"></script>'
