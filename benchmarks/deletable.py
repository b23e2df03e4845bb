"""Delete each feature in a copy, import the rest, and train a small run of each kind of model that
is left.

``python -m benchmarks.deletable [FEATURE ...] [--required]``: all features of
``[tool.architecture]`` in pyproject.toml, and its ``parts`` (single files), unless some are named;
with ``--required`` only those under ``deletable``, which must pass. A folder whose deletion breaks
something else is not beside the core, but part of it. What lies in one feature and joins it to
another is deleted with either: ``joins`` lists it, by the other feature.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import tempfile
import tomllib
import warnings
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
HEAVY = (
    "scipy.optimize",
    "scipy.sparse.linalg",
    "networkx",
    "polars",
    "pydantic",
    "typer",
    "matplotlib.pyplot",
    "torch",
)
"""Imported once, before a process per feature is forked: libraries of others, never this one."""

TRAINED = """
import mtcd

data = mtcd.synthetic("logistic", samples=40, features=8, clients=4)
stop = mtcd.Stop(iterations=12)
mtcd.train(data, mtcd.Glm("logistic", l2=1.0), "cycle", mtcd.STCD(stepsize=1e-3), stop)
mtcd.train(data, mtcd.Glm("logistic", l2=1.0), "cycle", mtcd.MTCD(tokens=2, hops=3), stop)
if hasattr(mtcd, "Trees"):
    mtcd.train(data, mtcd.Trees("logistic"), "cycle", mtcd.STCD(), mtcd.Stop(iterations=4))
if hasattr(mtcd, "SplitModel"):
    from torch import nn

    modules = {client: nn.Linear(2, 3) for client in data.clients}
    model = mtcd.SplitModel(modules, nn.Linear(12, 2))
    mtcd.train(data, model, "cycle", mtcd.MTCD(tokens=2, hops=2, stepsize=0.01, batch=10), mtcd.Stop(iterations=4))
"""


def features(root: Path = ROOT) -> tuple[list[str], list[str]]:
    """All features and single files that can be deleted, and those that must be deletable."""
    section = tomllib.loads((root / "pyproject.toml").read_text())["tool"]["architecture"]
    listed = [feature for feature in section["features"] if feature != section["default"]]
    return [*listed, *section["parts"]], list(section["deletable"])


def joins(root: Path = ROOT) -> dict[str, list[str]]:
    """By feature, the folders and files of other features that are deleted with it."""
    section = tomllib.loads((root / "pyproject.toml").read_text())["tool"]["architecture"]
    listed: dict[str, list[str]] = section["joins"]
    return listed


def copy_without(feature: str, place: Path) -> list[Path]:
    """Copy the packages without the folder or file of a feature, and without what joins it to
    others; returns the folders that hold packages."""
    roots = []
    for name in ("src", "experiments"):
        shutil.copytree(
            ROOT / name, place / name, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info")
        )
        roots.append(place / name)

    for name in (feature, *joins().get(feature, ())):
        _delete(name, roots)

    return roots


def _delete(name: str, roots: list[Path]) -> None:
    """Delete a folder or file, by its name as a module."""
    path = Path(*name.split("."))
    found = [root / path for root in roots if (root / path).is_dir()]
    found += [
        root / path.with_suffix(".py")
        for root in roots
        if (root / path.with_suffix(".py")).is_file()
    ]
    if not found:
        raise SystemExit(
            f"{name} is no folder or file: correct [tool.architecture] in pyproject.toml."
        )

    for one in found:
        shutil.rmtree(one) if one.is_dir() else one.unlink()


def modules(roots: list[Path]) -> Iterator[str]:
    """The names of all modules below these folders."""
    for root in roots:
        for path in sorted(root.rglob("*.py")):
            name = ".".join(path.relative_to(root).with_suffix("").parts)
            if not name.endswith("__main__"):
                yield name.removesuffix(".__init__")


def examined(feature: str, place: Path) -> dict[str, Any]:
    """What still works without a feature, in this process."""
    roots = copy_without(feature, place)
    sys.meta_path[:] = [
        finder
        for finder in sys.meta_path
        if "__editable__" not in getattr(finder, "__module__", "")
    ]
    ours = (ROOT / "src", ROOT / "experiments")
    sys.path[:] = [
        *map(str, roots),
        *(entry for entry in sys.path if Path(entry).absolute() not in ours),
    ]
    warnings.simplefilter("ignore")

    broken = {}
    for name in modules(roots):
        try:
            import_module(name)
        except Exception as error:
            broken[name] = f"{type(error).__name__}: {error}"

    try:
        exec(TRAINED, {})
        trains = ""
    except Exception as error:
        trains = f"{type(error).__name__}: {error}"

    return {"broken": broken, "trains": trains}


def without(feature: str) -> dict[str, Any]:
    """What still works without a feature, examined in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        answer = place / "answer.json"
        child = os.fork()
        if child == 0:
            try:
                answer.write_text(json.dumps(examined(feature, place)))
            finally:
                os._exit(0)

        os.waitpid(child, 0)
        if not answer.exists():
            return {"broken": {"": "the process ended early"}, "trains": "not tried"}

        found: dict[str, Any] = json.loads(answer.read_text())
        return found


def main() -> None:
    """Print a line for each feature; exit with 1 if one that must be deletable is not."""
    listed, required = features()
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("features", nargs="*", help="such as mtcd.ray; default: all")
    parser.add_argument("--required", action="store_true", help="only those that must pass")
    parser.add_argument(
        "--names", action="store_true", help="name the modules that cannot be imported"
    )
    arguments = parser.parse_args()
    chosen = arguments.features or (required if arguments.required else listed)

    for name in HEAVY:
        import_module(name)

    failed = []
    for feature in chosen:
        found = without(feature)
        broken, trains = found["broken"], found["trains"]
        works = not broken and not trains
        if feature in required and not works:
            failed.append(feature)

        print(
            f"{'ok    ' if works else 'broken'} {feature}: {len(broken)} modules, training "
            f"{trains or 'works'}",
            flush=True,
        )
        for name, why in broken.items() if arguments.names else ():
            print(f"       {name}: {why}")

    if failed:
        sys.exit(f"These features must be deletable, and are not: {', '.join(failed)}.")


if __name__ == "__main__":
    main()
