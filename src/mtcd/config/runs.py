"""Reading a run folder that the command line wrote: its config tells how to make the networks again."""

from __future__ import annotations

import json
from pathlib import Path

from mtcd.config.read import read_config
from mtcd.config.schema import SplitSection
from mtcd.errors import MtcdError
from mtcd.extras import find
from mtcd.files import MARKER
from mtcd.run import Run


def load_run(folder: str | Path) -> Run:
    """The run in a folder of ``mtcd train``, ready to predict; split networks are made as its config says."""
    place = Path(folder)
    if not (place / "config.yaml").exists():
        raise MtcdError(f"{folder} has no config.yaml: read runs of your own with mtcd.Run.load(folder, model).")
    config = read_config(place / "config.yaml")
    if not isinstance(config.model, SplitSection):
        return Run.load(place)
    find("mtcd.splitnet.model")
    from mtcd.config.split import saved_model

    try:
        about = json.loads((place / MARKER).read_text())
        told = about.get("split")
        model = None if told is None else saved_model(config.model, told, config.seed, config.data.standardise)
    except (OSError, KeyError, TypeError, ValueError) as error:
        raise MtcdError(f"{folder} is not a complete run folder ({type(error).__name__}: {error}).") from None
    return Run.load(place, model)
