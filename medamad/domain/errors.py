"""The errors of the interface: one exception for each kind, with its HTTP status."""

from typing import ClassVar


class ApiError(Exception):
    """A request that is answered with an error object.

    `str(error)` is the message for the client: which field is wrong and what was expected.
    """

    status: ClassVar[int] = 500


class BadRequest(ApiError):
    """Something malformed or out of range. Answered with 400."""

    status = 400


class Unauthorised(ApiError):
    """No login, or one that has ended. Answered with 401."""

    status = 401


class Forbidden(ApiError):
    """Understood and not allowed: demo mode, a foreign origin. Answered with 403."""

    status = 403


class NotFound(ApiError):
    """What was named does not exist. Answered with 404."""

    status = 404


class Conflict(ApiError):
    """The name is taken. Answered with 409."""

    status = 409


class TooLarge(ApiError):
    """The body is larger than the configuration allows. Answered with 413."""

    status = 413


class RetryLater(ApiError):
    """A condition that passes: the client may try again in `retry_after` whole seconds."""

    def __init__(self, message: str, *, retry_after: int) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class TooMany(RetryLater):
    """Too many requests from there. Answered with 429 and `Retry-After`."""

    status = 429


class Unavailable(RetryLater):
    """The store takes nothing at the moment. Answered with 503 and `Retry-After`."""

    status = 503
