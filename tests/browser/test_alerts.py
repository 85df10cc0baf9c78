"""Alerts in the settings: made, tried against a real server, changed and deleted."""

from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import pytest
from playwright.sync_api import expect
from support.browser.dashboard import Dashboard
from support.daemon import Daemon, configure, until

pytestmark = pytest.mark.browser

Make = Callable[..., Dashboard]
TEXT = "This is a test. At the moment, the alert has nothing to report."


@pytest.fixture
def receiver() -> Iterator[tuple[int, list[bytes]]]:
    received: list[bytes] = []

    class Keeping(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            received.append(self.rfile.read(int(self.headers["Content-Length"])))
            self.send_response(204)
            self.end_headers()

        def log_message(self, *_words: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Keeping) as server:
        thread = Thread(target=server.serve_forever)
        thread.start()
        yield server.server_port, received
        server.shutdown()
        thread.join()


def test_an_alert_is_made_tried_changed_and_deleted(
    new_daemon: Daemon, dashboard_of: Make, receiver: tuple[int, list[bytes]]
) -> None:
    port, received = receiver
    owner = new_daemon.client()
    owner.add_website("example.com")
    goal = {"name": "Order", "path": "/thanks"}
    assert owner.request("POST", "/api/websites/example.com/goals", goal).status == 201
    page = dashboard_of(owner).open("settings/alerts")
    page.get_by_label("Website or server").select_option("example.com")
    expect(page.get_by_text("No alerts yet.")).to_be_visible()
    form = page.get_by_role("region", name="New alert")
    form.get_by_label("What it reports").select_option("A goal is reached")
    form.get_by_label("Times, at least").fill("3")
    form.get_by_label("Webhook URL").fill(f"http://127.0.0.1:{port}/T0P/secret")
    form.get_by_label("Format").select_option("ntfy")
    form.get_by_role("button", name="Create alert").click()
    name = "The goal Order is reached 3 or more times within 24 h"
    item = page.get_by_role("listitem").filter(has_text=name)
    expect(item).to_contain_text(f"Sent to http://127.0.0.1:{port}/ as ntfy")
    expect(item).to_contain_text("Never fired")
    item.get_by_role("button", name="Try it now").click()
    expect(item).to_contain_text("is an address of this machine or of its networks")
    configure(new_daemon, '[alerts]\nwebhook_networks = ["127.0.0.1"]\n')
    until(lambda: "was reloaded" in new_daemon.log)
    item.get_by_role("button", name="Try it now").click()
    expect(item).to_contain_text(f"Sent: {TEXT}")
    assert received == [TEXT.encode()]
    item.get_by_role("button", name="Edit").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Times, at least").fill("7")
    dialog.get_by_role("button", name="Save").click()
    expect(dialog).to_have_count(0)
    changed = page.get_by_role("listitem").filter(has_text="is reached 7 or more times")
    expect(changed).to_contain_text(f"Sent to http://127.0.0.1:{port}/ as ntfy")
    changed.get_by_role("button", name="Try it now").click()
    expect(changed).to_contain_text(f"Sent: {TEXT}")
    assert len(received) == 2, "the address of the webhook is the same"
    changed.get_by_role("button", name="Edit").click()
    dialog.get_by_role("button", name="Delete").click()
    dialog.get_by_role("button", name="Press again to delete").click()
    expect(page.get_by_text("No alerts yet.")).to_be_visible()
    assert owner.get("/api/websites/example.com/alerts") == []
