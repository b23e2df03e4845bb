"""mtcd.inspect: from Python what the command says of a config."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")

import mtcd
from commands import outcome, run
from mtcd.core import features
from mtcd.core.errors import ConfigError
from split_problems import model as split_model
from split_problems import samples

DATA = mtcd.synthetic("logistic", samples=60, features=8, clients=4, seed=0)
ABOUT = "data: {synthetic: logistic, samples: 60, features: 8, clients: 4}\nnetwork: {kind: path}\n"
GLM = "model: {kind: logistic, l2: 1.0}\n"
SEALED = "privacy: {mode: sealed}\n"
DP = "privacy: {mode: sealed, dp: {epsilon: 3, tours: 5}}\n"


@pytest.mark.parametrize(
    ("config", "model", "method", "privacy"),
    [
        ("method: {kind: stcd}\n", None, mtcd.STCD(), None),
        ("method: {kind: mtcd, tokens: 2, hops: 4}\n", None, mtcd.MTCD(tokens=2, hops=4), None),
        ("method: {kind: svfl}\n", None, mtcd.SVFL(), None),
        ("method: {kind: dcpa}\n", None, mtcd.DCPA(), None),
        ("method: {kind: tree-cg}\n", None, mtcd.TreeCG(), None),
        (SEALED, None, None, mtcd.Privacy(mode="sealed")),
        (DP, None, None, mtcd.Privacy(mode="sealed", dp=mtcd.DP(epsilon=3, tours=5))),
        ("model: {kind: trees, loss: logistic}\n", mtcd.Trees("logistic"), None, None),
    ],
    ids=["stcd", "mtcd", "svfl", "dcpa", "tree-cg", "sealed", "dp", "trees"],
)
def test_the_command_says_what_the_function_says(
    config: str,
    model: object,
    method: mtcd.MTCD | None,
    privacy: mtcd.Privacy | None,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    path = tmp_path / "config.yaml"
    path.write_text(ABOUT + ("" if model else GLM) + config)
    assert run("inspect", str(path), "--json") == 0
    said = outcome(capsys)

    model = model or mtcd.Glm("logistic", l2=1.0)
    found = mtcd.inspect(DATA, model, "path", method, seed=0, privacy=privacy)
    known = [note for note in found.notes if not note.startswith("No method was given")]
    assert (len(found.notes) > len(known)) == (method is None)
    assert {**found.facts, "notes": known} == said

    assert run("inspect", str(path)) == 0
    words = " ".join(capsys.readouterr().out.split())
    for title, text in found.rows.items():
        assert title in words
        assert text.split()[0] in words
    assert str(found).count("\n") + 1 == len(found.rows)


def test_facts_of_a_split_network_are_plain_values_too() -> None:
    data = samples(clients=3, classes=2)
    found = mtcd.inspect(data, split_model(data), "path", mtcd.MTCD(tokens=1, hops=2, stepsize=0.1))
    assert found.facts["classes"] == [0, 1]
    assert found.facts == json.loads(json.dumps(found.facts))


def test_costs_are_those_of_a_round_and_its_messages() -> None:
    costs = mtcd.Costs(ratio=10, per="float")
    found = mtcd.inspect(DATA, mtcd.Glm("logistic"), "path", mtcd.SVFL(), costs=costs)
    assert found.facts["token_floats"] == 60  # a number for every sample
    assert found.facts["iteration_cost_per"] == {"message": 2 * 4, "float": 2 * 4 * 60}
    assert found.facts["cost_per_iteration"] == 480

    hop = mtcd.inspect(DATA, mtcd.Glm("logistic"), "path", mtcd.STCD(), costs=costs)
    assert (hop.facts["tokens"], hop.facts["cost_per_iteration"]) == (1, 60 / 10)


def test_samples_are_scaled_if_the_training_scales_them() -> None:
    found = mtcd.inspect(DATA, mtcd.Glm("linear"), "path", mtcd.STCD(), standardise=True)
    # unit variance: the curvature of a block is between N and N times its columns
    assert all(60 <= L <= 2 * 60 for L in found.facts["smoothness"]["blocks"])


def test_what_training_refuses_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"model\.l1: tree-cg needs a smooth objective"):
        mtcd.inspect(DATA, mtcd.Glm("logistic", l1=1.0), "path", mtcd.TreeCG())
    with pytest.raises(ConfigError, match="is for split networks"):
        mtcd.inspect(DATA, mtcd.Glm("logistic"), "path", compute=mtcd.Compute())


def test_a_class_is_known_by_its_first_base_that_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    @dataclass(frozen=True)
    class Special(mtcd.Glm):
        pass

    glm: dict[str, Any] = {"mtcd.models.glm.model:Glm": "mtcd.core.errors:ConfigError"}
    monkeypatch.setattr(features, "parts", lambda group: glm if group == "group" else {})
    assert features.of_class("group", Special) is ConfigError
    assert features.of_class("group", mtcd.Trees) is None
    assert features.of_class("other", Special) is None
