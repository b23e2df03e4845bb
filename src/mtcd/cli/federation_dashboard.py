"""mtcd federation dashboard: the page of a whole federation, from the operator's kit."""

from __future__ import annotations

import time
import webbrowser
from contextlib import suppress
from pathlib import Path

from mtcd.cli.federation_watch import known_words
from mtcd.cli.screen import screen
from mtcd.extras import find


def show_dashboard(kits: Path, address: str, opens: bool, every: float) -> None:
    """Serve the page, and ask all parties periodically, until Ctrl-C."""
    find("bokeh")  # raises with installation advice
    asking, overview = find("mtcd.federation.node.operator"), find("mtcd.federation.node.overview")
    from mtcd.report.federation import FederationView
    from mtcd.report.serve import serve

    kit = asking.operator_kit(kits, find("mtcd.federation.kit").read_kit)
    view, began = FederationView(kit.config), time.monotonic()
    with asking.Operator(kit) as operator:

        def look() -> None:
            answers = operator.ask("status", asking.QUICK)
            summary = overview.summarise(kit.config, answers, words=known_words(kit, answers))
            view.observe(summary, time.monotonic() - began)

        look()
        with serve(address, view.document) as serving:
            screen.print(f"Dashboard: {serving.url}", highlight=False, markup=False, soft_wrap=True)
            if serving.is_public:
                screen.print("Whoever has this address can read the page, and it is not encrypted.", highlight=False)
            screen.print("Ctrl-C closes it; the federation goes on.", highlight=False)
            if opens:
                webbrowser.open(serving.url)
            with suppress(KeyboardInterrupt):
                while True:
                    time.sleep(every)
                    look()
