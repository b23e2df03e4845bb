"""mtcd federation dashboard: the page of a whole federation, from the operator's bundle."""

from __future__ import annotations

import time
import webbrowser
from contextlib import suppress
from pathlib import Path
from typing import Any

from mtcd.core.optional import find
from mtcd.core.terminal.screen import screen
from mtcd.federation.commands.operator import known_statuses


def show_dashboard(bundles: Path, address: str, opens: bool, every: float, timeout: float) -> None:
    """Serve the page, and ask all parties periodically, until Ctrl-C."""
    find("bokeh")  # raises with installation advice
    asking = find("mtcd.federation.node.operator")
    overview = find("mtcd.federation.node.overview")
    from mtcd.reporting.federation import FederationView
    from mtcd.reporting.serve import serve

    bundle = asking.operator_bundle(bundles, find("mtcd.federation.credentials.bundle").read_bundle)
    view = FederationView(bundle.config)
    began = time.monotonic()
    before: dict[str, Any] = {}
    with asking.Operator(bundle) as operator:

        def look() -> None:
            answers = operator.ask("status", asking.timeouts_of(timeout))
            summary = overview.summarise(
                bundle.config, answers, before, known_statuses(bundle, answers)
            )
            before.update(summary["parties"])
            view.observe(summary, time.monotonic() - began)

        look()
        with serve(address, view.document) as serving:
            screen.print(f"Dashboard: {serving.url}", highlight=False, markup=False, soft_wrap=True)
            if serving.is_public:
                screen.print(
                    "Whoever has this address can read the page, and it is not encrypted.",
                    highlight=False,
                )
            screen.print("Ctrl-C closes it; the federation goes on.", highlight=False)
            if opens:
                webbrowser.open(serving.url)
            with suppress(KeyboardInterrupt):
                while True:
                    time.sleep(every)
                    look()
