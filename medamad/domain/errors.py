"""The errors of the interface: one exception for each kind, with its HTTP status."""

from typing import ClassVar


class ApiError(Exception):
    """A request that is answered with an error object.

    `str(error)` is the message for the client: which field is wrong and what was expected.
    """

    status: ClassVar[int] = 500


class BadRequest(ApiError):
    """Something is malformed or out of range (400)."""

    status = 400


class Unauthorised(ApiError):
    """There is no login, or it has expired (401)."""

    status = 401


class Forbidden(ApiError):
    """The request is not permitted: demo mode, another origin (403)."""

    status = 403


class NotFound(ApiError):
    """There is no such object (404)."""

    status = 404


class Conflict(ApiError):
    """The name is taken (409)."""

    status = 409


class TooLarge(ApiError):
    """The body is larger than the configuration permits (413)."""

    status = 413


class RetryLater(ApiError):
    """A condition that passes: the client may try again in `retry_after` whole seconds."""

    def __init__(self, message: str, *, retry_after: int) -> None:
        super().__init__(message)
        self.retry_after = retry_after


class TooMany(RetryLater):
    """Too many requests from this network (429, with `Retry-After`)."""

    status = 429


class Unavailable(RetryLater):
    """The service cannot do this at the moment (503, with `Retry-After`)."""

    status = 503
