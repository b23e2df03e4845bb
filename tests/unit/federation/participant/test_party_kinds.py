"""What a kind of model, or a mode of privacy, brings to a party is found by registration, and what
is not used is not imported."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from live import make_bundles
from mtcd.config.schema import PrivacySection
from mtcd.core import features
from mtcd.core.errors import ConfigError
from mtcd.data.synthetic import synthetic
from mtcd.federation.participant.kinds import (
    KINDS,
    NO_PRIVACY,
    PRIVACY,
    PartyKind,
    PartyPrivacy,
    party_kind,
    party_privacy,
)
from mtcd.federation.preflight import needed_packages

LINEAR: dict[str, Any] = {"kind": "logistic", "l2": 0.1}
SPLIT = {"kind": "split", "client": "mlp", "fusion": "linear"}
BATCHES = {"kind": "mtcd", "tokens": 1, "hops": 2, "batch": 4, "stepsize": 0.1}
MAKES = """
import sys
from pathlib import Path
from mtcd.federation.preflight import examine
from mtcd.federation.credentials.bundle import read_bundle_without_code

bundle = read_bundle_without_code(Path(sys.argv[1]))
found = examine(bundle, {"data": Path(sys.argv[2]), "key": "id"})
assert not found.failures, found.failures
print(type(found.participant).__name__, *sys.modules)
"""


def table(folder: Path) -> Path:
    path = folder / "b.csv"
    path.write_text("id,x\n" + "".join(f"s{i},{i % 7}\n" for i in range(20)))
    return path


def test_a_plain_linear_party_imports_no_other_kind(tmp_path: Path) -> None:
    bundles = make_bundles(tmp_path, ("a", "b"), alignment="hashed", model=LINEAR)
    command = [sys.executable, "-c", MAKES, str(bundles["b"].folder), str(table(tmp_path))]
    made, *modules = subprocess.run(
        command, check=True, capture_output=True, text=True
    ).stdout.split()
    assert made == "LinearParticipant"
    assert "mtcd.models.glm.party.participant" in modules

    others = ("mtcd.models.trees.party", "mtcd.models.splitnet.party", "mtcd.privacy.sealed.part")
    heavy = ("torch", "lightgbm", "tenseal", "mtcd.privacy.sealed.in_federation")
    assert [name for name in modules if name.startswith(others) or name in heavy] == []


@pytest.mark.parametrize("group", [KINDS, PRIVACY])
def test_everything_that_is_registered_can_be_loaded(group: str) -> None:
    homes = features.parts(group)
    assert homes
    for home in homes.values():
        assert isinstance(features.load(home), PartyKind | PartyPrivacy)


@pytest.mark.parametrize(
    ("changes", "packages", "shares_labels"),
    [
        ({"model": LINEAR}, set(), True),
        ({"model": {"kind": "trees", "loss": "logistic"}}, {"lightgbm"}, True),
        (
            {"model": SPLIT, "method": BATCHES, "labels__shared_with": ["parties", "server"]},
            {"torch", "safetensors"},
            True,
        ),
        (
            {
                "model": LINEAR,
                "privacy": {"mode": "sealed"},
                "labels__shared_with": None,
                "method": {"kind": "mtcd", "walk": "tour"},
            },
            {"tenseal", "zstandard"},
            False,
        ),
    ],
    ids=["linear", "trees", "split", "sealed"],
)
def test_each_kind_says_what_it_needs(
    changes: dict[str, Any], packages: set[str], shares_labels: bool, tmp_path: Path
) -> None:
    for package in packages:
        pytest.importorskip(package)
    bundles = make_bundles(tmp_path, ("a", "b", "c"), alignment="hashed", **changes)
    config = bundles["b"].config
    always = {"cryptography", "msgpack"}
    assert set(needed_packages(config)) - always == packages
    assert party_privacy(config.privacy).shares_labels is shares_labels


def test_without_its_part_a_kind_or_a_mode_of_privacy_is_refused(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    bundles = make_bundles(tmp_path, ("a", "b"), alignment="hashed", model=LINEAR)
    config = bundles["b"].config
    monkeypatch.setattr(features, "parts", lambda group: {})
    with pytest.raises(ConfigError, match="not for federations"):
        party_kind(config.model)
    # it would share labels that it is to keep
    with pytest.raises(ConfigError, match="sealed is not for federations"):
        party_privacy(PrivacySection(mode="sealed"))
    assert party_privacy(PrivacySection()) is NO_PRIVACY
    assert party_privacy(None) is NO_PRIVACY


def test_the_gap_of_trees_is_not_known(tmp_path: Path) -> None:
    trees = {"kind": "trees", "loss": "logistic"}
    bundles = make_bundles(tmp_path, ("a", "b"), alignment="hashed", model=trees)
    model = bundles["b"].config.model
    data = synthetic("logistic", 10, 2, 2, seed=0)
    with pytest.raises(ConfigError, match="optimum of this kind of model is not known"):
        party_kind(model).gap(model, data, {})
