"""mtcd train --live: the report page is served while the training runs."""

from __future__ import annotations

import time
import webbrowser
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import Any

from mtcd.config.build import Setup, resolved_yaml
from mtcd.core.terminal.screen import aside
from mtcd.core.terminal.text import escape
from mtcd.reporting.commands import LiveOptions
from mtcd.reporting.live import LiveRun
from mtcd.reporting.serve import LOCAL, serve


@contextmanager
def live_page(options: LiveOptions, setup: Setup, name: str) -> Iterator[Setup]:
    """The setup of a training that is watched; its page is served within the context."""
    live = LiveRun(name, setup.samples, setup.costs, resolved_yaml(setup.config), setup.notes)
    address = options.live_address
    if address is None:
        address = LOCAL
    with serve(address, live.document) as serving:
        _say(f"Live page: {serving.url}")
        # the address has a secret, but it is sent in the clear
        if serving.is_public:
            _say("Whoever has this address can read the page, and it is not encrypted.")
        if options.opens:
            webbrowser.open(serving.url)

        followed: tuple[Any, ...] = (*setup.callbacks, live)
        yield replace(setup, callbacks=followed)
        serving.finish()  # a page that is open shows the end, not the last measurement before it
        if options.stay:
            _say(f"The training has ended; the page stays at {serving.url} until Ctrl-C.")
            with suppress(KeyboardInterrupt):
                while True:
                    time.sleep(1.0)


def _say(text: str) -> None:
    aside.print(escape(text), highlight=False, soft_wrap=True)
