"""The grid of a sweep: which settings are tried, and the config of each training."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

from mtcd.config.read import apply_change, check_config, locate, put_value
from mtcd.config.schema import Config
from mtcd.config.settings import build_settings
from mtcd.config.yaml_file import parse_value, read_yaml
from mtcd.core.checks import check_whole
from mtcd.core.errors import ConfigError, MtcdError, listing
from mtcd.core.own_code import look_in

MOST = 100_000  # trainings of one sweep
Over = Mapping[str, Sequence[Any]]


@dataclass(frozen=True, eq=False)
class Point:
    """One training of the grid: the settings that differ, the seed, and the config; or why there is
    none."""

    settings: dict[str, Any]
    seed: int
    config: Config | None
    refused: str | None = None

    @property
    def label(self) -> str:
        """Its settings in words."""
        settings = {**self.settings, "seed": self.seed}
        return ", ".join(f"{key}={_short(value)}" for key, value in settings.items())


def parse_over(given: Sequence[str]) -> dict[str, list[Any]]:
    """The values of each key, from 'method.tokens=1,2,4'. Values are YAML; brackets and quotes keep
    commas together.

    >>> parse_over(["method.tokens=1,2", "method.walk=lazy,tour", "data.clients=[2, 3]"])
    {'method.tokens': [1, 2], 'method.walk': ['lazy', 'tour'], 'data.clients': [2, 3]}
    """
    over: dict[str, list[Any]] = {}
    for one in given:
        key, sign, text = one.partition("=")
        key, text = key.strip(), text.strip()
        if not sign or not text or not all(key.split(".")):
            raise ConfigError(
                f"--over {one!r} is not of the form key.key=value,value, such as "
                "method.hops=4,16,64."
            )
        if key in over:
            raise ConfigError(
                f"--over: {key} is given twice: write all its values after one --over."
            )

        # a list of YAML, so that its rules for commas in quotes and brackets hold here too
        if not (text.startswith("[") and text.endswith("]")):
            text = f"[{text}]"
        values = parse_value(text, f"--over {one!r}")
        assert isinstance(values, list)
        over[key] = values
    return over


def grid(
    config: Path | str | Mapping[str, Any], over: Over, seeds: int, changes: Sequence[str] = ()
) -> list[Point]:
    """All trainings: settings in the order given, the last key fastest, and for each the seeds.

    A setting that the config cannot have is refused alone; if all are, this is an error. Seeds
    count from that of the config.
    """

    content, folder, where = _content(config)
    for change in changes:
        apply_change(content, change)

    over = _checked(over)
    check_whole("seeds", seeds)
    first = content.get("seed") or 0
    check_whole("seed", first, least=0)

    # counted before any config is made: a slip in a list of values may ask for billions
    total = seeds * math.prod(map(len, over.values()))
    if total > MOST:
        raise ConfigError(
            f"This is a sweep of {total:,} trainings, more than {MOST:,}: give fewer values or "
            "seeds."
        )

    look_in(folder / str(content.get("code") or "."))
    points = []
    for chosen in product(*over.values()):
        settings = dict(zip(over, chosen, strict=True))
        # seeds side by side: the first mean is known as early as possible
        points += [_point(content, folder, where, settings, first + seed) for seed in range(seeds)]
    # a slip in the config itself, most likely: one reason says it all
    if all(point.config is None for point in points):
        raise ConfigError(str(points[0].refused))
    return points


def _content(config: Path | str | Mapping[str, Any]) -> tuple[dict[str, Any], Path, str]:
    """The keys of a config file, or of a dict; the folder that its paths are looked for in; its
    name in errors."""
    if isinstance(config, Mapping):
        return deepcopy(dict(config)), Path.cwd(), "the config"
    path = Path(config)
    content = read_yaml(path, "config", "data, model, network, method")
    return content, path.resolve().parent, str(path)


def _checked(over: Over) -> dict[str, list[Any]]:
    made: dict[str, list[Any]] = {}
    for key, values in over.items():
        if isinstance(values, str) or not isinstance(values, Sequence) or not len(values):
            raise ConfigError(f"over: give a list of values for {key}, but it is {values!r}.")
        if key == "seed":
            raise ConfigError(
                "over: seeds are counted from that of the config: use seeds (--seeds) for their "
                "number."
            )

        # as JSON: 1 and 1.0 are equal to Python, but may be different settings
        made[key] = list(values)
        shown = Counter(json.dumps(value, sort_keys=True, default=str) for value in made[key])
        twice = sorted(one for one, count in shown.items() if count > 1)
        if twice:
            raise ConfigError(
                f"over: {key} has a value twice ({listing(twice, 3)}): give each once."
            )
    return made


def _point(
    content: dict[str, Any], folder: Path, where: str, settings: dict[str, Any], seed: int
) -> Point:
    own = deepcopy(content)
    for key, value in settings.items():
        # into a copy: one setting must leave nothing behind for the next
        put_value(own, key, value, "over")

    own["seed"] = seed
    try:
        config = locate(check_config(own, where), folder)
        # what can be known without data is refused now, and not after hours of others
        build_settings(config)
    except MtcdError as error:
        return Point(settings, seed, None, str(error))
    return Point(settings, seed, config)


def _short(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:g}"
    return str(value)
