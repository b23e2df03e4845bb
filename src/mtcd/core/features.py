"""Features: folders that say what they add in a file ``feature.py``.

Nothing outside a feature names it: registries, the public names and the command line ask here. A
folder that is deleted takes its entries with it. Packages of others do the same with an entry point
in the group ``mtcd.features``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

from mtcd.core.optional import find

PACKAGE = Path(__file__).resolve().parents[1]


@dataclass(frozen=True)
class Feature:
    """What a folder adds, as ``module:name``. Nothing is imported until it is used.

    Parameters
    ----------
    parts
        By registry (its group of entry points), the classes by the names that configs give them.
    public_names
        The modules of names that users import from ``mtcd``.
    commands
        By place in the command line (``""`` for the top level), the modules with an ``app`` of
        Typer.
    run_files
        The names of the files that it writes into the folder of a run.
    config_sections
        By key of a config (``model``, ``data``), the classes of sections by the sign that tells
        them: a kind as ``kind: trees``, or a key that only this section has. The sign ``""`` is for
        what has no other sign.

    Examples
    --------
    >>> Feature(parts={"mtcd.walks": {"spiral": "my_package.spiral:SpiralWalk"}}).parts["mtcd.walks"]["spiral"]
    'my_package.spiral:SpiralWalk'
    """

    parts: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    public_names: Mapping[str, str] = field(default_factory=dict)
    commands: Mapping[str, str] = field(default_factory=dict)
    run_files: tuple[str, ...] = ()
    config_sections: Mapping[str, Mapping[str, str]] = field(default_factory=dict)


@cache
def built_in() -> tuple[Feature, ...]:
    """The features in folders of this package, by path."""
    found = []
    # Sorted: the file system gives files in any order, and commands are listed in this one.
    for path in sorted(PACKAGE.rglob("feature.py")):
        module = ".".join(("mtcd", *path.relative_to(PACKAGE).with_suffix("").parts))
        found.append(import_module(module).FEATURE)

    return tuple(found)


@cache
def of_other_packages() -> tuple[Feature, ...]:
    """The features of installed packages.

    The metadata of a package outlives a folder that was deleted by hand: a module that is gone adds
    nothing.
    """
    from importlib.metadata import entry_points  # takes a while to import, and few need it

    found = []
    for point in entry_points(group="mtcd.features"):
        if find_spec(point.module.partition(".")[0]) is not None:
            found.append(point.load())

    return tuple(found)


def every() -> Iterator[Feature]:
    """All features: those of this package, then those of others."""
    yield from built_in()
    yield from of_other_packages()


def parts(group: str) -> dict[str, str]:
    """What all built-in features add to a registry, by name."""
    found: dict[str, str] = {}
    for feature in built_in():
        found.update(feature.parts.get(group, {}))

    return found


def config_sections(key: str) -> dict[str, str]:
    """What all features add to a key of a config: classes of sections, by the sign that tells them.

    Parameters
    ----------
    key
        A key of a config, such as ``model``.
    """
    found: dict[str, str] = {}
    for feature in every():
        found.update(feature.config_sections.get(key, {}))

    return found


def of_class(group: str, kind: type) -> object | None:
    """What the features of this package have for a class, by the first of its bases that is named.

    The keys of the group are classes, as ``module:name``, so that none of them is imported.

    Parameters
    ----------
    group
        The group of ``Feature.parts``.
    kind
        The class.

    Returns
    -------
    object or None
        None where the group names neither the class nor a base.
    """
    # Bases from the class outwards: what is said of a class goes before what is said of its base.
    # Names, not classes: looking for a kind of model must not import all others.
    homes = parts(group)
    for base in kind.__mro__:
        home = homes.get(f"{base.__module__}:{base.__qualname__}")
        if home is not None:
            return load(home)

    return None


def load(home: str) -> object:
    """The object that ``module:name`` names.

    Raises
    ------
    NotInstalledError
        If its module needs an optional package that is not installed.

    Examples
    --------
    >>> load("mtcd.core.version:VERSION")
    '0.1.0'
    """
    module, _, name = home.partition(":")
    return getattr(find(module), name)
