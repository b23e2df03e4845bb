"""Defaults: those that docs/config.md states, which are those of a config, are those of the classes
too."""

import re
from typing import Any

import pytest
import yaml

from mtcd.methods.mtcd.mtcd import MTCD, STCD
from mtcd.methods.mtcd.stepsizes import Schedule
from mtcd.methods.svfl.svfl import SVFL
from mtcd.models.glm.model import Glm
from mtcd.protocol.ledger.costs import Costs
from project import ROOT

CONFIG = (ROOT / "docs" / "config.md").read_text(encoding="utf-8")
METHODS = {"mtcd": MTCD, "stcd": STCD, "svfl": SVFL}


def documented(section: str) -> dict[str, tuple[str, Any]]:
    """The keys of a section that have a default in its table: which methods they are for, and the
    default."""
    text = CONFIG.split(f"<!-- from the code: keys {section} -->")[1].split("<!-- end -->")[0]
    rows = [line.split(" | ") for line in text.splitlines() if line.startswith("| `")]
    methods = section == "MethodSection"
    cells = [
        (row[0].strip("| `"), row[1] if methods else "", row[3 if methods else 2]) for row in rows
    ]
    return {
        key: (kinds, yaml.safe_load(text.strip("`")))
        for key, kinds, text in cells
        if text.startswith("`")
    }


def documented_settings() -> list[tuple[str, str, Any]]:
    """Kind, key and default of the settings of methods."""
    stated = documented("MethodSection")
    found = [
        (kind, key, value)
        for key, (kinds, value) in stated.items()
        for kind in METHODS
        if kind in kinds
    ]
    assert {"local_updates", "hops", "first_pass", "transport", "local_solver"} <= {
        key for _, key, _ in found
    }
    return found


@pytest.mark.parametrize(("kind", "key", "value"), documented_settings())
def test_methods_have_the_documented_defaults(kind: str, key: str, value: Any) -> None:
    assert getattr(METHODS[kind](), key) == value


def test_the_schedule_has_the_documented_defaults() -> None:
    stated = {key: value for key, (_, value) in documented("ScheduleSection").items()}
    assert {key: getattr(Schedule(), key) for key in stated} == stated
    assert set(stated) == {"kind", "every", "factor", "warmup"}


def test_models_and_costs_have_the_documented_defaults() -> None:
    stated = {key: value for key, (_, value) in documented("GlmSection").items()}
    assert (Glm("huber").delta, Glm("linear").l1, Glm("linear").intercept) == (
        stated["delta"],
        stated["l1"],
        stated["intercept"],
    )
    (alpha,) = re.findall(r"`alpha` is its l2, (\d+) unless given", CONFIG)
    assert Glm("ridge").l2_weight == float(alpha)
    assert "weight of the l2 penalty; 0 unless given" in CONFIG
    assert Glm("linear").l2_weight == 0.0
    assert Costs().ratio == documented("CostsSection")["ratio"][1]


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
    """A network that is made without settings prints as the one with the settings that the row
    states."""
    nets = pytest.importorskip("mtcd.models.splitnet.nets")
    (cell,) = re.findall(rf"^\| `{row}` \|(.*)\|$", CONFIG, flags=re.MULTILINE)
    settings = re.search(rf"`{name}`: ((?:`\w+` \([^)]*\)(?:, )?)+)", cell)
    stated = {
        key: yaml.safe_load(text) for key, text in re.findall(r"`(\w+)` \(([^)]*)\)", settings[1])
    }
    make = (nets.NETS if row == "client_settings" else nets.FUSIONS)[name]
    assert repr(make(**needed)) == repr(make(**needed, **stated))
