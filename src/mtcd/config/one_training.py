"""One training by its config, as a worker does it: progress is reported, checkpoints of split
networks are kept."""

from __future__ import annotations

from collections.abc import Callable
from time import monotonic

from mtcd.config.build import Setup, build
from mtcd.config.schema import Config
from mtcd.config.unfinished import Unfinished
from mtcd.core.own_code import running_code
from mtcd.training.history import Measurement
from mtcd.training.run import Run

PATIENCE = 0.3  # seconds between two reports of progress


def train_one(
    config: Config,
    tell: Callable[[float], None] = lambda fraction: None,
    unfinished: Unfinished | None = None,
) -> tuple[Setup, Run]:
    """Train by the config. Names of code in it are run, as in the process that sent it.

    Parameters
    ----------
    config
        The config of one training.
    tell
        Called with the share of the training that is done, a few times a second.
    unfinished
        Where checkpoints of interrupted trainings are kept.
    """
    reported = monotonic()

    def watch(now: Measurement, fraction: float) -> None:
        nonlocal reported
        # each report is a message between processes
        if monotonic() - reported >= PATIENCE:
            reported = monotonic()
            tell(float(fraction))

    with running_code(config.code):
        setup = build(config)
        with (unfinished or Unfinished()).folder(config) as (folder, resume):
            return setup, setup.train(watch, folder, resume)
