"""mtcd predict: new samples in a federation, each party its own columns."""

from __future__ import annotations

import signal
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import typer

from mtcd.cli.party import interrupt, own_run
from mtcd.errors import ConfigError
from mtcd.extras import find


@dataclass(frozen=True)
class Wish:
    """What the command line asked for."""

    kit: Path
    data: Path | None
    id: str | None
    run: Path | None
    out: Path
    quiet: bool
    code: Sequence[Path] = ()
    agreed: Sequence[str] = ()


def predict(wish: Wish) -> None:
    """Take part until the predictions are where they belong."""
    signal.signal(signal.SIGTERM, interrupt)
    kit = find("mtcd.federation.kit").read_kit(wish.kit, wish.code, wish.agreed)
    samples, config = find("mtcd.federation.node.new_samples"), kit.config
    if config.is_operator:
        raise ConfigError(f"{wish.kit} is the operator's kit: predictions are made by the parties.")
    run = wish.run or own_run(wish.kit)
    if config.seen_by == config.name:
        samples.check_out(wish.out)
    new = decide = None
    if not config.is_server:
        if wish.data is None:
            raise ConfigError("Which new samples? Give this party's own columns of them, with --data new.csv.")
        new = samples.new_samples(kit, run, wish.data, wish.id)
    elif config.seen_by != config.name:
        raise samples.no_server(config)
    else:
        decide = samples.server_decides(kit, run)
    number = samples.run_number(run)
    show = None if wish.quiet else typer.echo
    predictor = find("mtcd.federation.node.predicting").Predictor
    predictor(kit, new, samples.writer(config, wish.out), decide, show, run / "predict.jsonl", number).run()
