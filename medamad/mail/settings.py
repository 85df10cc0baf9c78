"""The settings of mails, and the rules of addresses."""

import re
from typing import Final, Literal, TypeAlias, get_args

from attrs import field, frozen

from medamad.domain.errors import ApiError, BadRequest

Tls: TypeAlias = Literal["starttls", "implicit", "off"]
TLS_CHOICES: Final = get_args(Tls)
PORTS: Final[dict[Tls, int]] = {"starttls": 587, "implicit": 465, "off": 25}
"""The usual port of each."""
MAX_ADDRESS: Final = 254
"""Characters of an address (RFC 5321, erratum 1690)."""
_ADDRESS: Final = re.compile(
    r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+(\.[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+)*"
    r"@[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?(\.[A-Za-z0-9]([A-Za-z0-9-]*[A-Za-z0-9])?)*\Z"
)


class MailFailed(ApiError):
    """A mail could not be sent (409). `str(error)` has the mail server's own words.

    Not 502, which browsers get from a proxy while this service is down.

    `is_final`: it will not be taken later either. `is_refusal`: the server refused this mail; it
    may take others. `may_have_arrived`: the connection was lost after the whole mail was sent,
    before the response.
    """

    status = 409

    def __init__(
        self,
        reason: str,
        *,
        is_final: bool = False,
        is_refusal: bool = False,
        may_have_arrived: bool = False,
    ) -> None:
        super().__init__(reason)
        self.is_refusal = is_refusal
        self.is_final = is_final
        self.may_have_arrived = may_have_arrived


@frozen(kw_only=True)
class MailSettings:
    """How mails are sent. Without a host, none are."""

    host: str = ""
    port: int = 0
    tls: Tls = "starttls"
    user: str = ""
    password: str = field(default="", repr=False)
    sender: str = ""
    """The address that mails are from."""
    url: str = ""
    """The address of the service, "" if it is unknown."""

    def check(self) -> None:
        """Raise MailFailed if no mails can be sent."""
        if not self.host:
            raise MailFailed(
                "no mail server is configured: set host and from in the section [mail] of the"
                " configuration"
            )


@frozen
class Patience:
    """How long is waited for a connection, for a response, and for that to a whole mail."""

    connection_s: float = 30.0
    response_s: float = 60.0
    delivery_s: float = 300.0


USUAL_PATIENCE: Final = Patience()


def checked_address(text: str, name: str = "address") -> str:
    """Return an address of a mailbox. Raises BadRequest naming the field."""
    if not _ADDRESS.match(text) or len(text) > MAX_ADDRESS:
        raise BadRequest(f"{name}: expected an address such as ada@example.com")
    return text
