"""Asks the daemon on port 8080, by Python's own library alone: it runs in the booted machine.

`views` prints how many views example.com has; `load` sends hits, each over a connection of its own,
until standard input ends, and prints how many had which status; `add` registers a website.
"""

import http.client
import json
import sys
import threading
import uuid
from collections import Counter
from collections.abc import Callable
from pathlib import Path

FIRST_LOGIN = Path("/var/lib/private/medamad/first-login.txt")


def asked(method: str, path: str, body: object = None, **headers: str) -> tuple[int, str, str]:
    """Return status, cookie and body of an answer."""
    connection = http.client.HTTPConnection("127.0.0.1", 8080, timeout=60)
    try:
        headers["Content-Type"] = "application/json"
        connection.request(method, path, None if body is None else json.dumps(body), headers)
        answer = connection.getresponse()
        cookie = answer.getheader("Set-Cookie", "").partition(";")[0]
        return answer.status, cookie, answer.read().decode()
    finally:
        connection.close()


def cookie() -> str:
    """Log in by what the first start has written."""
    lines = dict(line.split(": ", 1) for line in FIRST_LOGIN.read_text("utf-8").splitlines())
    status, given, body = asked("POST", "/api/auth/login", lines)
    assert status == http.client.OK, body
    return given


def hit(hostname: str = "example.com") -> int:
    """Send a view and return the status."""
    url = f"https://{hostname}/"
    body = {"e": "load", "b": uuid.uuid4().hex, "u": url, "p": True, "q": True}
    return asked("POST", "/api/event/hit", body)[0]


def views() -> int:
    """Count the views of example.com."""
    _, _, body = asked("GET", "/api/website/example.com/summary", Cookie=cookie())
    counted: int = json.loads(body)["current"]["pageviews"]
    return counted


def load(hostname: str = "example.com") -> dict[str, int]:
    """Send hits until standard input ends."""
    statuses: Counter[str] = Counter()
    ended = threading.Event()

    def send() -> None:
        while not ended.is_set():
            try:
                status = str(hit(hostname))
            except (OSError, http.client.HTTPException) as error:
                status = type(error).__name__
            if not statuses:
                print("answered", flush=True)  # noqa: T201 - the test waits for it
            statuses[status] += 1
            # Many hits during each restart, and time left for what restarts.
            ended.wait(0.05)

    first = threading.Thread(target=send)
    first.start()
    while not statuses:
        first.join(0.01)
    others = [threading.Thread(target=send) for _ in range(3)]
    for thread in others:
        thread.start()
    sys.stdin.read()
    ended.set()
    for thread in (first, *others):
        thread.join()
    return statuses


def add(hostname: str = "example.com") -> int:
    """Register a website."""
    return asked("POST", "/api/websites", {"hostname": hostname}, Cookie=cookie())[0]


if __name__ == "__main__":
    answers: dict[str, Callable[..., object]] = {
        "views": views,
        "load": load,
        "add": add,
        "hit": hit,
    }
    print(json.dumps(answers[sys.argv[1]](*sys.argv[2:])))  # noqa: T201 - the answer
