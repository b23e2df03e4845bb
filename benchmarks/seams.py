"""Count the imports that the architecture wants to be rid of: ``python -m benchmarks.seams
[--list]``.

A *seam* is one import from a core module to a module of a feature. An *upward import* leads from a
core module to a higher layer of the core. A *side import* leads from one feature to another (the
default kind of model may be imported by all features, and what joins two features is deleted with
either: ``joins``). The layers and features stand in
``pyproject.toml``, under ``[tool.architecture]``; the budget there may only fall.
"""

from __future__ import annotations

import argparse
import ast
import tomllib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
NEUTRAL = ("mtcd", "mtcd.__main__")  # the public names, which are imported when they are used


@dataclass(frozen=True)
class Import:
    """One import: which module imports which other one, and the units to which both belong."""

    source: str
    target: str
    of: str
    to: str


@dataclass(frozen=True)
class Architecture:
    """The layers of the core, high to low, and the features above it."""

    layers: tuple[str, ...]
    features: tuple[str, ...]
    default: str
    joins: dict[str, list[str]]
    budget: dict[str, int]

    @classmethod
    def read(cls, root: Path = ROOT) -> Architecture:
        """As pyproject.toml declares it."""
        section = tomllib.loads((root / "pyproject.toml").read_text())["tool"]["architecture"]
        return cls(
            tuple(section["layers"]),
            tuple(section["features"]),
            section["default"],
            section["joins"],
            section["budget"],
        )

    def unit(self, module: str) -> str:
        """The feature or layer that a module belongs to: the longest name that contains it."""
        units = [
            unit
            for unit in (*self.features, *self.layers)
            if module == unit or module.startswith(f"{unit}.")
        ]
        if not units:
            raise ValueError(
                f"{module} belongs to no layer and no feature: name its package in pyproject.toml."
            )
        return max(units, key=len)

    def is_joined(self, module: str, feature: str) -> bool:
        """Whether a module lies in one feature and joins it to another, with which it is deleted
        too."""
        joined = self.joins.get(feature, [])
        return any(module == one or module.startswith(f"{one}.") for one in joined)

    def is_below(self, low: str, high: str) -> bool:
        """Whether a layer of the core lies below another."""
        return self.layers.index(low) > self.layers.index(high)


def sources(root: Path = ROOT) -> dict[str, Path]:
    """Every module of the package and of the experiments beside it, by name."""
    found = {}
    for folder in (root / "src", root / "experiments"):
        for path in sorted(folder.rglob("*.py")):
            name = ".".join(path.relative_to(folder).with_suffix("").parts)
            found[name.removesuffix(".__init__")] = path

    return found


def imported(path: Path, modules: dict[str, Path]) -> Iterator[str]:
    """The modules of this project that a file imports anywhere, types and names in strings
    included."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            named = node.value.partition(":")[0]  # as in find("mtcd.ray.engine")
            if named in modules and named.startswith("mtcd."):
                yield named

        if not isinstance(node, ast.ImportFrom) or node.module is None:
            continue

        for name in node.names:
            full = f"{node.module}.{name.name}"
            if full in modules:
                yield full
            elif node.module in modules:
                yield node.module


def imports(architecture: Architecture, root: Path = ROOT) -> list[Import]:
    """All imports between different units."""
    modules = sources(root)
    found = []
    for module, path in modules.items():
        if module in NEUTRAL:
            continue

        for target in sorted(set(imported(path, modules))):
            if target in NEUTRAL:
                continue

            one = Import(module, target, architecture.unit(module), architecture.unit(target))
            if one.of != one.to:
                found.append(one)

    return found


def kind(one: Import, architecture: Architecture) -> str:
    """What an import between two units is: 'seam', 'upward', 'side' or 'allowed'."""
    features = architecture.features
    if one.to in features and one.of not in features:
        return "seam"

    if one.to in features:
        inside = one.of.startswith(f"{one.to}.")  # a feature within another, as dp is within sealed
        allowed = one.to == architecture.default or architecture.is_joined(one.source, one.to)
        return "allowed" if inside or allowed else "side"

    if one.of in features or architecture.is_below(one.to, one.of):
        return "allowed"

    return "upward"


def counted(root: Path = ROOT) -> dict[str, list[Import]]:
    """The imports of each kind that the budget limits."""
    architecture = Architecture.read(root)
    found: dict[str, list[Import]] = {"seam": [], "upward": [], "side": []}
    for one in imports(architecture, root):
        what = kind(one, architecture)
        if what != "allowed":
            found[what].append(one)

    return found


def main() -> None:
    """Print the counts, the budget, and with ``--list`` every import."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--list", action="store_true", help="name every import")
    listed = parser.parse_args().list
    budget = Architecture.read().budget
    for what, found in counted().items():
        print(f"{what}: {len(found)} (budget {budget[what]})")
        for (of, to), number in Counter((one.of, one.to) for one in found).most_common():
            print(f"  {number:3} {of} -> {to}")
            if listed:
                for one in found:
                    if (one.of, one.to) == (of, to):
                        print(f"        {one.source} imports {one.target}")


if __name__ == "__main__":
    main()
