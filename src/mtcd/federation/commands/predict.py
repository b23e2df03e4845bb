"""mtcd predict: predict new samples in a federation; each party has its own columns and bundle."""

from __future__ import annotations

import signal
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import typer

from mtcd.core.errors import ConfigError
from mtcd.core.optional import find
from mtcd.federation.commands.party import interrupt, own_run


@dataclass(frozen=True)
class PredictOptions:
    """The options of ``mtcd predict``."""

    bundle: Path
    data: Path | None
    id: str | None
    run: Path | None
    out: Path
    quiet: bool
    code: Sequence[Path] = ()
    agreed: Sequence[str] = ()


def predict_with_others(
    bundle: Path,
    data: Path | None,
    key: str | None,
    run: Path | None,
    out: Path,
    quiet: bool,
    code: Sequence[Path],
    agreed: Sequence[str],
) -> None:
    """Take part with a bundle, as ``mtcd predict BUNDLE`` does: see :class:`PredictOptions`."""
    predict(PredictOptions(bundle, data, key, run, out, quiet, code, agreed))


def predict(options: PredictOptions) -> None:
    """Take part until the party that learns the predictions has them."""
    signal.signal(signal.SIGTERM, interrupt)
    bundle = find("mtcd.federation.credentials.bundle").read_bundle(
        options.bundle, options.code, options.agreed
    )
    samples, config = find("mtcd.federation.node.new_samples"), bundle.config
    if config.is_operator:
        raise ConfigError(
            f"{options.bundle} is the operator's bundle, which cannot predict: use the bundle of a "
            "party."
        )
    run = options.run or own_run(options.bundle)
    if config.seen_by == config.name:
        samples.check_out(options.out)
    new = decide = None
    if not config.is_server:
        if options.data is None:
            raise ConfigError(
                "Which new samples? Give this party's own columns of them, with --data new.csv."
            )
        new = samples.new_samples(bundle, run, options.data, options.id)
    elif config.seen_by != config.name:
        raise samples.no_server(config)
    else:
        decide = samples.server_decides(bundle, run)
    number = samples.run_number(run)
    show = None if options.quiet else typer.echo
    predictor = find("mtcd.federation.node.predicting").Predictor
    predictor(
        bundle,
        new,
        samples.writer(config, options.out),
        decide,
        show,
        run / "predict.jsonl",
        number,
    ).run()
