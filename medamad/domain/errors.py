"""The refusals: one exception for each kind, with the status that `web` answers it by."""

from typing import ClassVar


class Refusal(Exception):
    """A request that is answered with an error object instead of what it asked for.

    `str(refusal)` is the message for the client: which field is wrong and what was expected.
    """

    status: ClassVar[int] = 500


class BadRequest(Refusal):
    """Something malformed or out of range. Answered with 400."""

    status = 400


class Unauthorised(Refusal):
    """No login, or one that has ended. Answered with 401."""

    status = 401


class Forbidden(Refusal):
    """Understood and not allowed: demo mode, a foreign origin. Answered with 403."""

    status = 403


class NotFound(Refusal):
    """What was named does not exist. Answered with 404."""

    status = 404


class Conflict(Refusal):
    """The name is taken. Answered with 409."""

    status = 409


class TooLarge(Refusal):
    """The body is larger than the configuration allows. Answered with 413."""

    status = 413


class Passing(Refusal):
    """A refusal that passes by itself: the client may try again in `retry_after` whole seconds."""

    def __init__(self, message: str, *, retry_after: int) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class TooMany(Passing):
    """Too many requests from there. Answered with 429 and `Retry-After`."""

    status = 429


class Unavailable(Passing):
    """The store takes nothing at the moment. Answered with 503 and `Retry-After`."""

    status = 503
