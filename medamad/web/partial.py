"""The header that tells what an answer is without, of days of which there are sums alone."""

from datetime import date
from typing import Final

from medamad.store.parts import Missed, Missing
from medamad.web.replies import Headers

PARTIAL: Final = b"X-Medamad-Partial"
_EPOCH_DAY: Final = date(1970, 1, 1).toordinal()


def partial_headers(missed: Missed) -> Headers:
    """Give the header, or none for a whole answer.

    For each kind of what is missing, the first and the last day of which it is: a dictionary of
    RFC 8941, such as `figures="2025-01-01/2025-01-31"`.
    """
    told = [
        f'{missing.value}="{_date(days[0])}/{_date(days[-1])}"'
        for missing in Missing
        if (days := missed.days(missing))
    ]
    return ((PARTIAL, ", ".join(told).encode("ascii")),) if told else ()


def _date(day: int) -> str:
    return date.fromordinal(_EPOCH_DAY + day).isoformat()
