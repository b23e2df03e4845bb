"""A figure of split networks that was interrupted goes on from the last epoch of each training."""

from pathlib import Path

import pytest

pytest.importorskip("torch")

from mtcd.config.one_training import Unfinished
from mtcd.config.read import check_config
from mtcd.config.schema import Config
from mtcd.core.files import CHECKPOINT
from mtcd_experiments.work import CurveJob

CONFIG = {
    "data": {
        "synthetic": "multinomial",
        "samples": 60,
        "test_samples": 20,
        "features": 8,
        "clients": 2,
        "seed": 0,
    },
    "model": {"kind": "split", "client": "mlp", "client_settings": {"width": 3, "hidden": [4]}},
    "method": {"kind": "svfl", "local_updates": 2, "batch": 20, "stepsize": 0.05},
    "stop": {"epochs": 4},
}


def config(**changes: object) -> Config:
    return check_config({**CONFIG, **changes})


class KilledError(Exception):
    pass


def interrupted(
    place: Path, asked: Config, monkeypatch: pytest.MonkeyPatch, epochs: int = 2
) -> None:
    """A training that dies after so many epochs."""
    monkeypatch.setattr("mtcd.config.one_training.PATIENCE", -1)
    seen = []

    def tell(fraction: float) -> None:
        seen.append(fraction)
        if len(seen) > epochs:
            raise KilledError

    with pytest.raises(KilledError):
        CurveJob(asked, Unfinished(place)).run(tell)


def test_it_goes_on_to_the_same_end(tmp_path, monkeypatch) -> None:
    asked = config()
    whole = CurveJob(asked).run()
    interrupted(tmp_path / "here", asked, monkeypatch)
    assert len(list((tmp_path / "here").rglob(CHECKPOINT))) == 1
    told = []
    went_on = CurveJob(asked, Unfinished(tmp_path / "here")).run(told.append)
    assert len(told) == 2  # of four epochs, two were done
    assert went_on["columns"] == whole["columns"]
    assert not (tmp_path / "here").exists()


def test_fresh_starts_anew_and_other_settings_have_a_place_of_their_own(
    tmp_path, monkeypatch
) -> None:
    asked = config()
    interrupted(tmp_path, asked, monkeypatch)
    told = []
    CurveJob(config(seed=1), Unfinished(tmp_path)).run(told.append)
    assert len(told) == 5
    assert len(list(tmp_path.rglob(CHECKPOINT))) == 1
    CurveJob(asked, Unfinished(tmp_path, fresh=True)).run(told.append)
    assert len(told) == 10


def test_linear_models_are_not_kept(tmp_path) -> None:
    linear = {
        "data": {"synthetic": "ridge", "samples": 20, "features": 4, "clients": 2},
        "model": {"kind": "ridge"},
    }
    asked = check_config(
        {**linear, "method": {"kind": "svfl"}, "stop": {"iterations": 5, "gap": 1e-9}}
    )
    CurveJob(asked, Unfinished(tmp_path)).run()
    assert not list(tmp_path.iterdir())
