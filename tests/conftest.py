"""What every test stands under: a failure that is logged fails the test."""

import gc
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings
from support.log_failures import LoggedFailures
from twisted.logger import globalLogPublisher

pytest.register_assert_rewrite("support.storage.contents", "support.storage.scenes")

# How long an example takes says what else the machine has to do.
settings.register_profile(
    "patient", settings(), deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("patient")


@pytest.fixture(autouse=True)
def logged_failures() -> Iterator[LoggedFailures]:
    failures = LoggedFailures()
    globalLogPublisher.addObserver(failures)
    yield failures
    # A Deferred whose failure nobody took logs it when it is collected.
    gc.collect(1)
    globalLogPublisher.removeObserver(failures)
    if failures.texts():
        pytest.fail("logged:\n" + "\n".join(failures.texts()), pytrace=False)
