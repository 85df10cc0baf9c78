"""Errors turned into replies: the one place where a refusal becomes HTTP."""

from collections.abc import Iterable
from http import HTTPStatus
from typing import Final

from twisted.logger import Logger
from twisted.python.failure import Failure
from werkzeug.exceptions import HTTPException, MethodNotAllowed

from medamad.model.errors import Passing, Refusal, Unauthorised
from medamad.web.replies import JSON, NO_SNIFFING, NO_STORE, Headers, Reply, encode_json

NOT_FOUND: Final = "there is nothing at this address"
FAULT: Final = "a fault of the server's own, which its log describes"

_BEARER: Final = (b"WWW-Authenticate", b"Bearer")
"""By what a program may make itself known (RFC 6750 section 3)."""

_log = Logger()


def error_reply(status: int, message: str, headers: Headers = ()) -> Reply:
    """Answer with the error object."""
    body = encode_json({"error": {"code": int(status), "message": message}})
    return Reply(status, body, JSON, (NO_STORE, NO_SNIFFING, *headers))


def refusal_reply(refusal: Refusal) -> Reply:
    """Answer with what a refusal says."""
    headers: Headers = ()
    if isinstance(refusal, Passing):
        headers = ((b"Retry-After", b"%d" % refusal.retry_after),)
    if isinstance(refusal, Unauthorised):
        headers = (_BEARER,)
    return error_reply(refusal.status, str(refusal), headers)


def failure_reply(failure: Failure, where: str) -> Reply:
    """Answer a request that failed; a fault of our own is logged, under the name `where`."""
    error = failure.value
    if isinstance(error, Refusal):
        return refusal_reply(error)
    if isinstance(error, MethodNotAllowed):
        return method_reply(error.valid_methods or ())
    if isinstance(error, HTTPException):
        return error_reply(HTTPStatus.NOT_FOUND, NOT_FOUND)
    _log.failure("answering {where} failed", failure, where=where)
    return error_reply(HTTPStatus.INTERNAL_SERVER_ERROR, FAULT)


def method_reply(methods: Iterable[str]) -> Reply:
    """Answer that an address knows other methods than the one used."""
    allowed = allow(methods)
    return error_reply(
        HTTPStatus.METHOD_NOT_ALLOWED,
        f"this address takes only {allowed}",
        ((b"Allow", allowed.encode("ascii")),),
    )


def allow(methods: Iterable[str]) -> str:
    """Give the value of an Allow header: some methods, and OPTIONS, in order."""
    return ", ".join(sorted({*methods, "OPTIONS"}))
