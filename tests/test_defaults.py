"""Defaults: those that docs/config.md states, in brackets, are those of the code."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from mtcd.ledger.costs import Costs
from mtcd.methods.mtcd import MTCD, STCD
from mtcd.methods.schedule import Schedule
from mtcd.methods.svfl import SVFL
from mtcd.model.linear import Glm

CONFIG = (Path(__file__).parents[1] / "docs" / "config.md").read_text(encoding="utf-8")
METHODS = {"mtcd": MTCD, "stcd": STCD, "svfl": SVFL}


def documented_settings() -> list[tuple[str, str, Any]]:
    """Kind, key and default of the settings of methods whose row of the table ends with a default."""
    rows = re.findall(r"^\| `(\w+)` \| ([^|]*) \|.*\(([\w.]+)\) \|$", CONFIG, flags=re.MULTILINE)
    found = [(kind, key, yaml.safe_load(text)) for key, kinds, text in rows for kind in METHODS if kind in kinds]
    assert {key for _, key, _ in found} == {"local_updates", "hops", "first_pass", "transport", "local_solver"}
    return found


@pytest.mark.parametrize(("kind", "key", "value"), documented_settings())
def test_methods_have_the_documented_defaults(kind: str, key: str, value: Any) -> None:
    assert getattr(METHODS[kind](), key) == value


def test_the_schedule_has_the_documented_defaults() -> None:
    (text,) = re.findall(r"`(\{kind: step, [^}]*\})` are its defaults", CONFIG)
    stated = yaml.safe_load(text)
    assert {key: getattr(Schedule(), key) for key in stated} == stated
    assert set(stated) == {"kind", "every", "factor", "warmup"}


def test_models_and_costs_have_the_documented_defaults() -> None:
    (delta,) = re.findall(r"`huber` .* `delta` \((\d+)\)", CONFIG)
    (alpha,) = re.findall(r"`alpha` is its l2, (\d+) unless given", CONFIG)
    (ratio,) = re.findall(r"`ratio`: .* 1/ratio \((\d+)\)\.", CONFIG)
    assert (Glm("huber").delta, Glm("ridge").l2_weight, Costs().ratio) == (float(delta), float(alpha), float(ratio))
    assert "`l1`, `l2`: 0 unless given" in CONFIG
    assert (Glm("linear").l1, Glm("linear").l2_weight, Glm("linear").intercept) == (0.0, 0.0, False)


@pytest.mark.parametrize(
    ("row", "name", "needed"),
    [
        ("client_settings", "mlp", {"shape": (5,)}),
        ("client_settings", "resnet18", {"shape": (3, 32, 32)}),
        ("client_settings", "mvcnn", {"shape": (2, 64, 64)}),
        ("fusion_settings", "mlp", {"width": 7, "outputs": 3}),
    ],
)
def test_networks_have_the_documented_defaults(row: str, name: str, needed: dict[str, Any]) -> None:
    """A network that is made without settings prints as the one with the settings that the row states."""
    nets = pytest.importorskip("mtcd.splitnet.nets")
    (cell,) = re.findall(rf"^\| `{row}` \|(.*)\|$", CONFIG, flags=re.MULTILINE)
    settings = re.search(rf"`{name}`: ((?:`\w+` \([^)]*\)(?:, )?)+)", cell)
    assert settings is not None
    stated = {key: yaml.safe_load(text) for key, text in re.findall(r"`(\w+)` \(([^)]*)\)", settings[1])}
    make = (nets.NETS if row == "client_settings" else nets.FUSIONS)[name]
    assert repr(make(**needed)) == repr(make(**needed, **stated))
