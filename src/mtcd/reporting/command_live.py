"""mtcd train --live: the report page is served while the training runs."""

from __future__ import annotations

import time
import webbrowser
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from typing import Any

from mtcd.config.build import Setup, resolved_yaml
from mtcd.core.terminal.screen import aside
from mtcd.core.terminal.text import escape
from mtcd.reporting.live import LiveRun
from mtcd.reporting.serve import serve


@dataclass(frozen=True)
class LiveOptions:
    """Where the page is served, whether a browser opens it, and whether it stays after the
    training."""

    address: str
    opens: bool
    stays: bool


@contextmanager
def live_page(options: LiveOptions | None, setup: Setup, name: str) -> Iterator[Setup]:
    """The setup of a training that is watched; its page is served within the context."""
    if options is None:
        yield setup
        return
    live = LiveRun(name, setup.samples, setup.costs, resolved_yaml(setup.config), setup.notes)
    with serve(options.address, live.document) as serving:
        _say(f"Live page: {serving.url}")
        if serving.is_public:
            _say("Whoever has this address can read the page, and it is not encrypted.")
        if options.opens:
            webbrowser.open(serving.url)
        followed: tuple[Any, ...] = (*setup.callbacks, live)
        yield replace(setup, callbacks=followed)
        serving.finish()
        if options.stays:
            _say(f"The training has ended; the page stays at {serving.url} until Ctrl-C.")
            with suppress(KeyboardInterrupt):
                while True:
                    time.sleep(1.0)


def _say(text: str) -> None:
    aside.print(escape(text), highlight=False, soft_wrap=True)
