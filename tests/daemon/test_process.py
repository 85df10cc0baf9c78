import pytest
from support.daemon import finished_fork

pytestmark = pytest.mark.daemon

PROGRAM = """
import sys
from twisted.internet import reactor
from medamad.config.schema import Config, LogSection
from medamad.daemon.logs import begin_log
from medamad.daemon.process import make_daemon

begin_log(sys.stderr, {}, LogSection())
daemon = make_daemon(Config(), reactor, read_config=Config, leave_with=print)
"""


def run(further: str) -> tuple[str, str]:
    """Return what a program with a daemon says on standard output and on standard error."""
    ended = finished_fork((), before=f"{PROGRAM}{further}\nsys.exit()")
    assert ended.returncode == 0
    return ended.stdout, ended.stderr


@pytest.mark.parametrize("when", ["daemon.ended(7)", "reactor.callWhenRunning(daemon.ended, 7)"])
def test_an_ended_daemon_stops_the_reactor(when: str) -> None:
    assert run(f"{when}\nreactor.run()") == ("7\n", "")


def test_an_error_while_stopping_is_logged_once() -> None:
    printed = run("""
reactor.addSystemEventTrigger("before", "shutdown", daemon.ended, 7)
reactor.callWhenRunning(reactor.stop)
reactor.run()
""")
    assert printed == ("7\n", "")


@pytest.mark.parametrize("number", ["SIGTERM", "SIGINT"])
def test_a_signal_while_stopping_leaves_no_traceback(number: str) -> None:
    printed = run(f"""
import signal
from twisted.internet.task import deferLater
reactor.addSystemEventTrigger("before", "shutdown", signal.raise_signal, signal.{number})
reactor.callWhenRunning(daemon.ended, 7)
reactor.addSystemEventTrigger("before", "shutdown", deferLater, reactor, 0.1)
reactor.run()
""")
    assert printed == ("7\n", "")
