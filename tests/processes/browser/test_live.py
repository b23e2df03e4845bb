"""A page that is served: new hops arrive, the view stays, a lost connection is told and found
again."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from playwright.sync_api import Page, expect

import made_up_reports as made_up
from mtcd.reporting.render import render
from shown import Shown, visits_after


class Training:
    """A server of a report that grows."""

    def __init__(self) -> None:
        self.whole = made_up.run("training", iterations=40) | {"status": "running"}
        self.steps = 20
        self.port = 0

    def report(self) -> dict[str, Any]:
        trace = self.whole["trace"]
        hops = self.steps * trace["tokens"]
        cut = {
            key: trace[key][:hops]
            for key in ("token", "sender", "receiver", "iteration", "seconds")
        }
        grown = made_up.curves(self.steps)
        return made_up.report(
            self.whole | {"trace": trace | cut | {"total": hops}, "curves": grown}, mode="live"
        )

    @contextmanager
    def serving(self) -> Iterator[str]:
        training = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                report = training.report()
                data = self.path == "/secret/data"
                found = data or self.path == "/secret/"
                body = json.dumps(report) if data else render(report)
                self.send_response(200 if found else 404)
                self.send_header(
                    "Content-Type", "application/json" if data else "text/html; charset=utf-8"
                )
                self.end_headers()
                self.wfile.write(body.encode())

            def log_message(self, *words: Any) -> None:
                pass

        server = ThreadingHTTPServer(("127.0.0.1", self.port), Handler)
        self.port = server.server_address[1]
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        yield f"http://127.0.0.1:{self.port}/secret/"
        server.shutdown()
        server.server_close()
        thread.join()


def served(page: Page, address: str) -> Shown:
    page.goto(address)
    return Shown(page)


def test_the_picture_follows_the_training_and_keeps_the_view(tab: Callable[..., Page]) -> None:
    training = Training()
    with training.serving() as address:
        shown = served(tab(), address)
        shown.at_step(20)
        shown.page.locator("#filter").fill("clinic 0")
        shown.page.locator("#curve-y").select_option("objective")
        shown.page.get_by_role("button", name="clinic 04").click()
        training.steps = 90
        shown.at_step(90)
        names = [f"clinic {k:02d}" for k in range(10)]
        assert shown.visits() == {name: visits_after(training.whole, 90)[name] for name in names}
        assert shown.text("#client-name") == "clinic 04"
        assert shown.page.locator("#curve-y").input_value() == "objective"
        assert shown.table("#ends")[0]["Last iteration"] == "89"
        shown.slide(7)
        training.steps = 120
        expect(shown.page.locator("#clock")).to_contain_text("step 7 of 120")


def test_a_lost_connection_is_told_and_found_again(chromium: Any) -> None:
    training = Training()
    page = chromium.new_page()
    with training.serving() as address:
        shown = served(page, address)
        expect(page.locator("#connection")).to_have_text("live")
    expect(page.locator("#connection")).to_have_text("connection lost, trying again")
    assert page.locator("#announcer").text_content() == "connection lost, trying again"
    assert shown.visits() == visits_after(training.whole, 20)
    training.steps = 35
    with training.serving():
        expect(page.locator("#connection")).to_have_text("live")
        shown.at_step(35)
    page.close()


def test_after_the_end_of_the_training_the_page_asks_nothing_more(tab: Callable[..., Page]) -> None:
    training, page, asked = Training(), tab(), []
    with training.serving() as address:
        served(page, address)
        training.whole |= {"status": "converged"}
        expect(page.locator("#connection")).to_have_text("training has ended")
        expect(page.locator("#status")).to_have_text("converged")
        page.on("request", lambda request: asked.append(request.url))
    page.wait_for_timeout(2500)  # longer than the second between two requests
    assert asked == []
    expect(page.locator("#connection")).to_have_text("training has ended")
