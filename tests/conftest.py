"""What holds for every test: a failure that is logged fails the test."""

import gc
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings
from support.fast_routes import make_routes_fast
from support.log_failures import LoggedFailures
from twisted.logger import globalLogPublisher

pytest.register_assert_rewrite("support.storage.contents", "support.storage.scenes")

# How long an example takes says what else the machine has to do.
settings.register_profile(
    "thorough", settings(), deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("short", settings.get_profile("thorough"), max_examples=30)


def pytest_configure(config: pytest.Config) -> None:
    """Choose how many examples Hypothesis makes, where a test does not say: all if it is slow."""
    # Most tests build a whole service: by default its parts are garbage-collected many times.
    gc.set_threshold(10_000)
    settings.load_profile("thorough" if config.option.markexpr == "slow" else "short")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Make `-m slow` also select the tests that Hypothesis makes examples for."""
    if config.option.markexpr == "slow":
        for item in items:
            if getattr(getattr(item, "obj", None), "is_hypothesis_test", False):
                item.add_marker(pytest.mark.slow)


@pytest.hookimpl(trylast=True)
def pytest_collection_finish() -> None:
    """Exempt modules and collected tests from garbage collection."""
    gc.collect()
    gc.freeze()


def pytest_unconfigure() -> None:
    """Collect garbage at exit, which extension modules would report as leaked."""
    gc.unfreeze()


@pytest.fixture(scope="session", autouse=True)
def _fast_routes() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        make_routes_fast(patch.setattr)
        yield


@pytest.fixture(autouse=True)
def logged_failures() -> Iterator[LoggedFailures]:
    failures = LoggedFailures()
    globalLogPublisher.addObserver(failures)
    yield failures
    # A Deferred logs its unhandled failure when it is collected.
    gc.collect(1)
    globalLogPublisher.removeObserver(failures)
    if failures.texts():
        pytest.fail("logged:\n" + "\n".join(failures.texts()), pytrace=False)
