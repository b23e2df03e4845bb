"""What cannot work with split networks is refused in words that name the culprit and say what to
do."""

import subprocess
import sys
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional

import mtcd
from mtcd.core.errors import ConfigError, MtcdError
from mtcd.methods.dcpa.dcpa import DCPA
from mtcd.methods.method import Method
from mtcd.methods.mtcd.mtcd import MTCD, STCD
from mtcd.methods.svfl.svfl import SVFL
from mtcd.models.splitnet.labels import check_outputs
from split_problems import normed, samples

DATA = samples(3, 12)
METHOD = SVFL(1, 0.1, 4)


def reps(**instead: Any) -> dict[str, Any]:
    return {"c0": nn.Linear(2, 3), "c1": nn.Linear(3, 3), "c2": nn.Linear(2, 3), **instead}


def train(
    model: Any = None, method: Method = METHOD, stop: Any = None, data: Any = DATA, **others: Any
) -> mtcd.Run:
    model = model or mtcd.SplitModel(reps(), nn.Linear(9, 3))
    return mtcd.train(
        data,
        model,
        others.pop("network", "complete"),
        method,
        stop or mtcd.Stop(iterations=2),
        **others,
    )


def refused(*words: str, **given: Any) -> None:
    with pytest.raises(MtcdError) as told:
        train(**given)
    for word in words:
        assert word in str(told.value)


class Raises(nn.Linear):
    def __init__(self, error: Exception, training_only: bool = False) -> None:
        super().__init__(2, 3)
        self.error, self.training_only = error, training_only

    def forward(self, x: Any) -> Any:
        if self.training or not self.training_only:
            raise self.error
        return super().forward(x)


class Wide(nn.Module):
    """Gives three dimensions."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(2, 6)

    def forward(self, x: Any) -> Any:
        return self.inner(x).reshape(len(x), 2, 3)


@pytest.mark.parametrize(
    ("representations", "fusion", "words"),
    [
        (
            {"c0": nn.Linear(2, 3), "c1": nn.Linear(3, 3)},
            nn.Linear(9, 3),
            ("no representation", "'c2'"),
        ),
        (reps(c3=nn.Linear(2, 3)), nn.Linear(9, 3), ("representation for 'c3'", "no features")),
        (
            reps(c1=nn.Linear(2, 3)),
            nn.Linear(9, 3),
            ("'c1'", "cannot take its features of shape (2, 3)"),
        ),
        (reps(c2=Wide()), nn.Linear(9, 3), ("'c2'", "(2, 2, 3)", "flatten")),
        (reps(c2=nn.Sequential(nn.Linear(2, 3), nn.Flatten(0))), nn.Linear(9, 3), ("'c2'", "(6,)")),
        (reps(), nn.Linear(8, 3), ("fusion module", "(2, 9)")),
        (reps(), nn.Linear(9, 2), ("3 classes", "make it give 3")),
        (
            reps(),
            nn.Sequential(nn.Linear(9, 3), nn.Flatten(0)),
            ("fusion module", "row of outputs", "gave (6,)"),
        ),
        (reps(), nn.LSTM(9, 3), ("fusion module", "row of outputs", "gave tuple")),
        (reps(c0=Raises(RuntimeError("too hot"))), nn.Linear(9, 3), ("'c0'", "too hot")),
        (reps(c0=Raises(KeyError("spoon"))), nn.Linear(9, 3), ("'c0'", "spoon")),
        (reps(c0=Raises(AssertionError("no"))), nn.Linear(9, 3), ("'c0'", "no")),
        (reps(c0=Raises(ValueError("only then"), True)), nn.Linear(9, 3), ("'c0'", "only then")),
        (reps(c0=nn.LSTM(2, 3)), nn.Linear(9, 3), ("'c0'", "tuple")),
    ],
)
def test_modules_that_do_not_fit(representations: Any, fusion: Any, words: tuple[str, ...]) -> None:
    refused(*words, model=mtcd.SplitModel(representations, fusion))


@pytest.mark.parametrize(
    ("about", "words"),
    [
        ({"representations": reps(c1="a net")}, ("'c1'", "torch.nn.Module")),
        ({"representations": reps(c1=nn.ReLU())}, ("'c1'", "no parameters")),
        ({"representations": {}}, ("mapping",)),
        ({"representations": [nn.Linear(2, 3)]}, ("mapping",)),
        ({"fusion": None}, ("fusion", "nn.Identity()")),
        ({"aggregation": "sums"}, ("sums", "sum")),
        ({"optimiser": "Adam"}, ("optimiser", "torch.optim")),
    ],
)
def test_models_that_cannot_be(about: Any, words: tuple[str, ...]) -> None:
    with pytest.raises(MtcdError) as told:
        mtcd.SplitModel(**{"representations": reps(), "fusion": nn.Linear(9, 3), **about})
    for word in words:
        assert word in str(told.value)


def test_widths_that_cannot_be_added() -> None:
    model = mtcd.SplitModel(reps(c1=nn.Linear(3, 4)), nn.Linear(3, 3), "sum")
    refused("c0: 3", "c1: 4", "concat", model=model)
    refused("c0: 3", "c1: 4", "concat", model=replace(model, aggregation="mean"))


@pytest.mark.parametrize(
    ("loss", "words"),
    [
        (nn.CrossEntropyLoss(reduction="none"), ("one number",)),
        (lambda outputs, labels: 3.0, ("one number",)),
        (nn.BCELoss(), ("loss cannot take",)),
        ("cross entropy", ("'cross entropy'", "cross-entropy")),
    ],
)
def test_losses(loss: Any, words: tuple[str, ...]) -> None:
    refused(*words, model=mtcd.SplitModel(reps(), nn.Linear(9, 3), loss=loss))


def test_labels() -> None:
    texts = replace(DATA, labels=np.array(list("abc") * 4))
    refused(
        "squared",
        "texts",
        data=texts,
        model=mtcd.SplitModel(reps(), nn.Linear(9, 1), loss="squared"),
    )
    values = replace(DATA, labels=np.linspace(0, 1, 12))
    refused(
        "cross-entropy",
        "fractions",
        data=values,
        model=mtcd.SplitModel(reps(), nn.Linear(9, 3), loss="cross-entropy"),
    )
    odd = replace(samples(3, 3), labels=np.array([0, 7, 1]))
    refused("row 2 is 7", "no training sample", data=replace(DATA, test=odd))


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"method": SVFL(1, batch=4)}, ("stepsize 'auto'", "number")),
        ({"stop": mtcd.Stop(gap=1e-3)}, ("stop.gap", "stop.epochs")),
        ({"method": DCPA(0.1)}, ("dcpa", "mtcd, stcd or svfl")),
        (
            {"method": STCD(1, 0.1, "tour", acceleration="momentum")},
            ("acceleration", "leave them out"),
        ),
        ({"method": MTCD(2, 2, 1, 0.1, combine="optimal")}, ("optimal", "leave them out")),
        ({"method": SVFL(1, 0.1, batch=13)}, ("method.batch is 13", "12 samples")),
        ({"method": STCD(1, 0.1, fusion_client="c9")}, ("fusion_client", "c9")),
        ({"compute": mtcd.Compute(graphs=True, device="cpu")}, ("graphs", "GPU")),
        ({"compute": mtcd.Compute(device="cuda:99")}, ("cuda:99", "auto")),
        ({"standardise": True}, ("standardise",)),
        ({"model": "resnet"}, ("SplitModel", "resnet")),
        ({"seed": -1}, ("seed",)),
    ],
)
def test_settings_for_linear_models_or_none(given: Any, words: tuple[str, ...]) -> None:
    refused(*words, **given)


def test_batch_norm_where_it_cannot_be() -> None:
    normed_head = nn.Sequential(nn.Linear(9, 3), nn.BatchNorm1d(3))
    refused("stcd", "batch norm", method=STCD(1, 0.1), model=mtcd.SplitModel(reps(), normed_head))
    alone = mtcd.SplitModel(reps(c1=normed(3, 3)), nn.Linear(9, 3))
    refused("'c1'", "batch", "1", method=SVFL(1, 0.1, 1), model=alone)
    refused(
        "fusion", "batch", "1", method=SVFL(1, 0.1, 1), model=mtcd.SplitModel(reps(), normed_head)
    )


@pytest.mark.parametrize(
    "given", [{"device": "gpu"}, {"precision": "half"}, {"graphs": "yes"}, {"threads": 0}]
)
def test_compute(given: Any) -> None:
    with pytest.raises(MtcdError, match=f"compute.{next(iter(given))}"):
        mtcd.Compute(**given)


BLOCK = """
import sys
class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "torch":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Blocked())
"""
CONFIG = """
data: {synthetic: multinomial, samples: 20, features: 4, clients: 2}
model: {kind: split, client: mlp}
method: {kind: svfl, stepsize: 0.1, batch: 5}
"""


def without_torch(script: str, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", BLOCK + script], cwd=folder, capture_output=True, text=True
    )


def test_without_torch_it_says_how_to_install(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text(CONFIG)
    asked = without_torch(
        "import mtcd\ntry: mtcd.SplitModel\nexcept mtcd.MtcdError as e: print(e)", tmp_path
    )
    assert "pip install '.[torch]'" in asked.stdout
    for command in (["train"], ["inspect"]):
        script = f"from mtcd.cli.app import main\nmain({[*command, 'config.yaml']!r})"
        done = without_torch(script, tmp_path)
        assert done.returncode == 2
        assert "pip install" in done.stderr
        assert ".[torch]" in done.stderr
        assert "Traceback" not in done.stderr
    assert not (tmp_path / "runs").exists()


def test_without_torch_other_mistakes_are_told_as_with_it(tmp_path: Path) -> None:
    script = (
        "import mtcd\n"
        "from mtcd.engines.kinds import ENGINES\n"
        "data = mtcd.synthetic('ridge', samples=20, features=6, clients=3)\n"
        "for mistake in (lambda: mtcd.train(data, 'ridge', method=mtcd.STCD()), lambda: "
        "ENGINES['rai']):\n"
        "    try: mistake()\n"
        "    except mtcd.MtcdError as e: print(e)"
    )
    done = without_torch(script, tmp_path)
    assert "train needs a Glm, Trees, Mixed or a SplitModel, but got 'ridge'" in done.stdout, (
        done.stderr
    )
    assert "no engine is called 'rai'; did you mean 'ray'" in done.stdout, done.stderr


@pytest.mark.parametrize("loss", [functional.cross_entropy, functional.multi_margin_loss])
@pytest.mark.parametrize("classes", [1, 2, 3, 4])
def test_one_output_is_enough_for_two_classes_but_not_for_the_cross_entropy(
    classes: int, loss: Any
) -> None:
    fitting = {classes} | ({1} if classes == 2 and loss is not functional.cross_entropy else set())
    for width in range(1, 6):
        with (
            nullcontext()
            if width in fitting
            else pytest.raises(ConfigError, match=f"make it give {classes}")
        ):
            check_outputs(torch.zeros(7, width), 7, tuple(range(classes)), loss)
