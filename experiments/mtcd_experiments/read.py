"""Finding experiment files by name, and reading them."""

from __future__ import annotations

from importlib.metadata import files
from pathlib import Path

from pydantic import ValidationError

from mtcd.config.explain import explain
from mtcd.config.yaml_file import read_yaml
from mtcd.core.errors import ConfigError, did_you_mean
from mtcd_experiments.schema import Experiment

ALL = "all"
# the figures that `all` stands for, in the order in which they are shown
FIGURES = (
    "ridge-topologies",
    "sparse-logistic",
    "path80",
    "path40-ratios",
    "modelnet10",
    "cifar10",
    "ablation-tokens",
    "ablation-hops",
    "ablation-local-updates",
)


def experiments_folder() -> Path:
    """Where the experiments of the library are: beside its source, or where they were installed."""
    package = Path(__file__).resolve().parent
    installed = [
        file.locate()
        for file in files("mtcd") or ()
        if file.parts[-3:-1] == ("mtcd", "experiments")
    ]
    places = [
        package.parent,  # a checkout: the folder experiments
        *(Path(str(file)).resolve().parent for file in installed[:1]),
        package.parent / "share" / "mtcd" / "experiments",  # pip install --target
    ]
    return next((place for place in places if any(place.glob("*.yaml"))), places[0])


def known_experiments() -> dict[str, Path]:
    """The experiments of the library by name: first the figures in their order, then any others."""
    found = {path.stem: path for path in sorted(experiments_folder().glob("*.yaml"))}
    return {name: found[name] for name in (*FIGURES, *found) if name in found}


def find_experiments(asked: str) -> list[Path]:
    """The files that a name, a path, or 'all' stands for."""
    known = known_experiments()
    if asked == ALL:
        figures = [known[name] for name in FIGURES if name in known]
        if not figures:
            raise ConfigError(
                f"There are no experiments in {experiments_folder()}: install the library again."
            )
        return figures
    if asked in known:
        return [known[asked]]
    if asked.endswith((".yaml", ".yml")):
        return [Path(asked)]
    hint = did_you_mean(asked, [*known, ALL])
    raise ConfigError(f"There is no figure {asked!r}: {hint} A file of your own must end in .yaml.")


def read_experiment(path: Path) -> Experiment:
    """An experiment file, checked key by key."""
    content = read_yaml(path, "experiment", "title, problem, cases, curves, panels")
    try:
        return Experiment.model_validate(content)
    except ValidationError as error:
        raise ConfigError(f"{path}: {explain(error, content, Experiment)}") from None
