"""What the account needs from the store and the password threads."""

from collections.abc import Callable
from typing import Protocol, TypeVar

from twisted.internet.defer import Deferred

from medamad.domain.accounts import Account, Login

T = TypeVar("T")


class Hashing(Protocol):
    """Runs slow work in the password pool."""

    def __call__(self, work: Callable[[], T], /) -> Deferred[T]:
        """Return the result of `work`, done in another thread."""


class Records(Protocol):
    """What the store keeps of the account: reads are at once, writes when they are on disk."""

    def read(self) -> Account | None:
        """Return the account, if there is one."""

    def login(self, digest: bytes, /) -> Login | None:
        """Return the login kept under a token's digest."""

    async def put(self, account: Account, /) -> None:
        """Keep the account."""

    async def change(
        self, change: Callable[[Account], Account], /, *, login: bytes | None, end_logins: bool
    ) -> Account:
        """Change the account in one transaction, and end every login but `login` if told to.

        `change` is called in another thread. Raises Unauthorised when there is no account or
        no such login by then.
        """

    async def add_login(self, digest: bytes, login: Login, /) -> None:
        """Keep a new login."""

    async def touch_login(self, digest: bytes, now: int, /) -> None:
        """Note that a login was used."""

    async def end_login(self, digest: bytes, /) -> None:
        """Forget a login."""

    async def forget_logins(self, is_over: Callable[[Login], bool], /) -> int:
        """Forget the logins that are over; gives how many there were."""
