"""Reads run folders; those of the command line contain the config from which networks are
rebuilt."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, cast

from mtcd.config.read import read_config, refuse_code
from mtcd.config.yaml_file import read_yaml
from mtcd.core import features
from mtcd.core.errors import MtcdError
from mtcd.core.files import MARKER
from mtcd.core.own_code import running_code
from mtcd.training.run import Run

CONFIG = "config.yaml"
UNREAD = "mtcd.models_without_weights"
"""The group in which a kind of model whose run folders have weights only names a function that
makes the rest from the config, by its entry in run.json."""


def load_run(
    folder: str | Path,
    model: Any = None,
    run_code: bool = False,
    trusted: Sequence[str] = (),
) -> Run:
    """Read the run in a folder that ``mtcd train`` or ``run.save`` wrote, ready to predict.

    Of a split network the folder has the weights. ``mtcd train`` keeps its config beside them,
    which tells how to make the modules again.

    Parameters
    ----------
    folder : str or Path
        The run folder.
    model : SplitModel, optional
        The modules of a run of your own, whose folder has no config.
    run_code : bool, default False
        Whether to run the code that the config names, for modules and losses that are not built in.
        Without it, the folder of a stranger is safe to read.
    trusted : sequence of str
        Types of transformers of scikit-learn that skops does not know, and that may be loaded.

    Returns
    -------
    Run
        The run.

    Raises
    ------
    MtcdError
        If the folder is no run folder, or cannot be read.

    Examples
    --------
    >>> import mtcd, pathlib, tempfile
    >>> folder = pathlib.Path(tempfile.mkdtemp()) / "run"
    >>> data = mtcd.synthetic("ridge", samples=50, features=8, clients=4)
    >>> run = mtcd.train(data, mtcd.Glm("ridge", l2=1.0), stop=mtcd.Stop(iterations=3))
    >>> run.save(folder)
    >>> mtcd.load_run(folder).final.objective == run.final.objective
    True
    """
    place = Path(folder)
    with ExitStack() as contexts:
        if run_code:
            contexts.enter_context(running_code(_code_folder(place)))
        if model is None and (place / CONFIG).exists():
            model = _configured_model(place, run_code)
        return Run.load(place, model, trusted)


def _code_folder(place: Path) -> Path:
    """The folder of the user's code, from the config of the run where there is one."""
    if not (place / CONFIG).exists():
        return place
    content = read_yaml(place / CONFIG, "config", "data, model, network, method")
    return place / str(content.get("code") or ".")


def _configured_model(place: Path, run_code: bool) -> Any:
    """The model of the config in a run folder, without its weights; None where these are enough."""
    try:
        about = dict(json.loads((place / MARKER).read_text()))
    except (OSError, TypeError, ValueError) as error:
        raise _incomplete(place, error) from None

    homes = features.parts(UNREAD)
    needed = [entry for entry in homes if about.get(entry) is not None]
    if not needed:
        return None

    config = read_config(place / CONFIG)
    # a run folder may be from somebody else
    if not run_code:
        refuse_code(
            config,
            "use load_run(folder, run_code=True); or bring the modules: load_run(folder, model).",
        )

    entry = needed[0]
    make = cast(Callable[..., Any], features.load(homes[entry]))
    try:
        return make(place, config, about[entry])
    except (KeyError, TypeError, ValueError) as error:
        raise _incomplete(place, error) from None


def _incomplete(place: Path, error: Exception) -> MtcdError:
    return MtcdError(f"{place} is not a complete run folder ({type(error).__name__}: {error}).")
