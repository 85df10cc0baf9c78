import msgspec
import pytest
from support.log_failures import LoggedFailures
from twisted.python.failure import Failure

from medamad.domain.errors import (
    BadRequest,
    Conflict,
    Forbidden,
    NotFound,
    TooLarge,
    TooMany,
    Unauthorised,
    Unavailable,
)
from medamad.web.responses import failure_response


@pytest.mark.parametrize(
    ("error", "status", "headers"),
    [
        (BadRequest("x"), 400, {}),
        (Unauthorised("x"), 401, {b"WWW-Authenticate": b"Bearer"}),
        (Forbidden("x"), 403, {}),
        (NotFound("x"), 404, {}),
        (Conflict("x"), 409, {}),
        (TooLarge("x"), 413, {}),
        (TooMany("x", retry_after=7), 429, {b"Retry-After": b"7"}),
        (Unavailable("x", retry_after=9), 503, {b"Retry-After": b"9"}),
    ],
)
def test_an_error_is_a_json_object(
    error: Exception, status: int, headers: dict[bytes, bytes]
) -> None:
    response = failure_response(Failure(error), "GET")
    assert response.status == status
    assert msgspec.json.decode(response.body) == {"error": {"code": status, "message": "x"}}
    assert response.content_type == b"application/json"
    assert dict(response.headers) == headers | {
        b"Cache-Control": b"no-store",
        b"X-Content-Type-Options": b"nosniff",
    }


def test_an_internal_error_is_logged_but_not_shown(logged_failures: LoggedFailures) -> None:
    response = failure_response(Failure(KeyError("a secret")), "GET")
    assert response.status == 500
    assert b"secret" not in response.body
    assert len(logged_failures.take(KeyError)) == 1
