"""mtcd reproduce as people run it: what it leaves, every bad file, and the experiments of the
library."""

from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

from commands import run
from mtcd.config.schema import StopSection
from mtcd.core.errors import ConfigError
from mtcd_experiments.plan import plan_figure
from mtcd_experiments.read import (
    FIGURES,
    experiments_folder,
    find_experiments,
    known_experiments,
    read_experiment,
)
from project import ROOT
from small_experiment import GONE, SMALL, Inline, changed, text

OPTIONAL = {"optional": True}
DOCS = ROOT / "docs" / "experiments.md"


@pytest.fixture
def inline(monkeypatch: pytest.MonkeyPatch) -> type[Inline]:
    return Inline.take_over(monkeypatch)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "small.yaml").write_text(text(SMALL))
    return tmp_path


@pytest.mark.long
def test_the_command_leaves_pictures_numbers_and_trainings(folder, capsys, inline) -> None:
    assert run("reproduce", "small.yaml", "--quick", "--out", "out") == 0
    shown = capsys.readouterr()
    assert "SVFL" in shown.out
    assert "Time:" in shown.out
    assert "small: done after" in shown.err
    names = {path.name for path in (folder / "out").iterdir()}
    assert names >= {"small.png", "small.svg", "small.pdf", "small.csv", "curves"}
    assert inline.trained == 8 == len(list((folder / "out" / "curves").iterdir()))


@pytest.mark.long
def test_all_goes_on_without_a_figure_whose_data_is_missing(
    folder, capsys, inline, monkeypatch
) -> None:
    monkeypatch.delenv("MTCD_DATA", raising=False)
    real = changed({"problem": {"data": None}})
    real["problem"]["data"] = {"dataset": "gisette", "clients": 4}
    (folder / f"{FIGURES[0]}.yaml").write_text(text(real))
    (folder / f"{FIGURES[1]}.yaml").write_text(text(SMALL))
    monkeypatch.setattr("mtcd_experiments.read.experiments_folder", lambda: folder)
    assert run("reproduce", "all", "--seeds", "1", "--page", "page.md") == 2
    said = " ".join(capsys.readouterr().err.split())
    assert f"{FIGURES[0]} was not made" in said
    assert "MTCD_DATA" in said
    assert (folder / "results" / f"{FIGURES[1]}.png").exists()
    assert FIGURES[0] in (folder / "page.md").read_text()


@pytest.mark.long
def test_all_goes_on_without_an_optional_figure_and_ends_well(
    folder, capsys, inline, monkeypatch
) -> None:
    without_torch(monkeypatch)
    (folder / f"{FIGURES[0]}.yaml").write_text(text(changed(SPLIT, OPTIONAL)))
    (folder / f"{FIGURES[1]}.yaml").write_text(text(SMALL))
    monkeypatch.setattr("mtcd_experiments.read.experiments_folder", lambda: folder)
    assert run("reproduce", "all", "--seeds", "1", "--page", "page.md") == 0
    said = " ".join(capsys.readouterr().err.split())
    assert f"{FIGURES[0]} is left out" in said
    assert "pip install '.[torch]'" in said
    assert f"- {FIGURES[0]}:" in (folder / "page.md").read_text()


def test_an_optional_figure_that_is_asked_for_by_name_must_be_possible(
    folder, capsys, monkeypatch
) -> None:
    without_torch(monkeypatch)
    (folder / "small.yaml").write_text(text(changed(SPLIT, OPTIONAL)))
    refused(folder, capsys, ["small.yaml"], ["case ring, curve svfl", "pip install '.[torch]'"])


WITHOUT_TORCH = ("mtcd.models.splitnet.config", "mtcd.models.splitnet.kind")
SPLIT = {"problem": {"model": {"kind": "split", "client": "mlp", "alpha": GONE}}}


def without_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(module: str) -> ModuleType:
        if module.startswith("mtcd.models.splitnet.") and module not in WITHOUT_TORCH:
            raise ModuleNotFoundError("No module named 'torch'", name="torch")
        return import_module(module)

    monkeypatch.setattr("mtcd.core.optional.import_module", missing)


def test_list_names_every_experiment(folder, capsys, monkeypatch) -> None:
    monkeypatch.setattr("mtcd_experiments.read.experiments_folder", lambda: folder)
    assert run("reproduce", "--list") == 0
    assert "A figure for tests." in capsys.readouterr().out


ACCURACY = {"measure": "accuracy", "panels": [{"x": "epochs"}], "target": GONE}
BAD = {
    "unknown key": ({"panles": []}, ["unknown key 'panles'", "did you mean 'panels'"]),
    "unknown key of a case": (
        {"cases": {"row": {"titel": "x"}}},
        ["'cases.row.titel'", "did you mean 'title'"],
    ),
    "unknown key of a panel": (
        {"panels": [{"x": "cost", "ration": 3}]},
        ["'panels.0.ration'", "did you mean 'ratio'"],
    ),
    "unknown key of the config": (
        {"problem": {"stop": {"gapp": 1}}},
        ["case ring, curve svfl", "'stop.gapp'"],
    ),
    "unknown section": ({"problem": {"modle": {}}}, ["'modle'", "did you mean 'model'"]),
    "unknown curve": ({"cases": {"row": {"curves": ["scd"]}}}, ["cases.row.curves", "'scd'"]),
    "unknown kind of method": (
        {"curves": {"mtcd": {"method": {"kind": "mtdc"}}}},
        ["curve mtcd", "method.kind"],
    ),
    "unknown axis": ({"panels": [{"x": "time"}]}, ["panels.0.x", "'time'"]),
    "no hops": ({"curves": {"mtcd": {"method": {"hops": 0}}}}, ["case ring, curve mtcd", "hops"]),
    "no grid": (
        {"curves": {"svfl": {"method": {"stepsize": "tune"}}}},
        ["tune: must give the grid"],
    ),
    "no grid for a case": (
        {"cases": {"row": {"changes": {"method": {"stepsize": "tune"}}}}},
        ["case row", "grid"],
    ),
    "no gap": ({"problem": {"stop": {"gap": None}}}, ["stop.gap"]),
    "a seed": ({"problem": {"seed": 3}}, ["seed", "--seeds"]),
    "no panels": ({"panels": []}, ["panels"]),
    "no ratios": ({"ratios": []}, ["ratios"]),
    "an endless ratio": ({"ratios": [float("inf")]}, ["ratios.0"]),
    "a target that is no number": ({"target": float("nan")}, ["target"]),
    "no curves in a case": ({"cases": {"row": {"curves": []}}}, ["cases.row.curves"]),
    "a hidden label": ({"curves": {"mtcd": {"label": "_mtcd"}}}, ["curves.mtcd.label"]),
    "no label": ({"curves": {"mtcd": {"label": ""}}}, ["curves.mtcd.label"]),
    "no local updates": (
        {"curves": {"svfl": {"method": {"local_updates": 0}}}},
        ["curve svfl", "local_updates"],
    ),
    "a negative limit": (
        {"problem": {"stop": {"iterations": -1}}},
        ["case ring, curve svfl", "iterations"],
    ),
    "costs of a case": (
        {"cases": {"row": {"changes": {"costs": {"ratio": 5}}}}},
        ["case row", "costs in problem"],
    ),
    "costs of the quick version": (
        {"quick": {"changes": {"costs": {"ratio": 5}}}},
        ["costs in problem"],
    ),
    "a title about a network that is none": (
        {"cases": {"row": {"title": "{connectivity}", "changes": {"network": {"kind": "rwo"}}}}},
        ["rwo"],
    ),
    "an axis of accuracy": ({"panels": [{"x": "epochs"}]}, ["with measure: gap", "iterations"]),
    "an accuracy to reach": ({"target_accuracy": 0.8}, ["target_accuracy", "measure: accuracy"]),
    "an axis of the gap": (
        {**ACCURACY, "panels": [{"x": "ratio"}]},
        ["with measure: accuracy", "epochs"],
    ),
    "a gap to reach": ({**ACCURACY, "target": 1e-3}, ["target is for measure: gap"]),
    "dots of accuracy": ({**ACCURACY, "layout": "dots"}, ["layout is for measure: gap"]),
    "accuracy tuned": (
        {**ACCURACY, "curves": {"svfl": {"method": {"stepsize": "tune"}}}},
        ["step sizes", "its own"],
    ),
    "accuracy tuned in a case": (
        {**ACCURACY, "cases": {"ring": {"changes": {"method": {"stepsize": "tune"}}}}},
        ["case ring", "give a number"],
    ),
    "a share above all": ({**ACCURACY, "target_accuracy": 80}, ["target_accuracy"]),
    "accuracy up to a gap": (ACCURACY, ["case ring", "stop has epochs and no gap"]),
    "no data": ({"problem": {"data": None}}, ["'data' is missing"]),
}


@pytest.mark.long
@pytest.mark.parametrize("name", BAD)
def test_bad_experiments_are_one_clear_paragraph_and_leave_nothing(
    folder, capsys, name: str
) -> None:
    change, says = BAD[name]
    (folder / "small.yaml").write_text(text(changed(change)))
    refused(folder, capsys, ["small.yaml", *(["--quick"] if "quick" in name else [])], says)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["pth80"], ["pth80", ".yaml"]),
        (["nowhere.yaml"], ["nowhere.yaml"]),
        (["broken.yaml"], ["broken.yaml", "not valid YAML"]),
        (["list.yaml"], ["not an experiment"]),
        ([], ["Which figure"]),
        (["small.yaml", "--page", "."], ["--page"]),
        (["small.yaml", "--out", "small.yaml"], ["choose another folder"]),
        (["small.yaml", "--jobs", "0"], ["--jobs"]),
        (["small.yaml", "--seeds", "0"], ["--seeds"]),
    ],
)
def test_bad_commands_are_one_clear_paragraph_and_leave_nothing(
    folder, capsys, arguments, says
) -> None:
    (folder / "broken.yaml").write_text("title: [")
    (folder / "list.yaml").write_text("- 1\n")
    refused(folder, capsys, arguments, says)


def refused(
    folder: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], says: list[str]
) -> None:
    before = sorted(folder.rglob("*"))
    assert run("reproduce", *arguments) == 2
    shown = capsys.readouterr()
    said = " ".join(shown.err.split())
    assert shown.out == ""
    assert "Traceback" not in said
    for word in says:
        assert word in said, said
    assert sorted(folder.rglob("*")) == before


@pytest.mark.long
def test_a_training_that_cannot_work_names_its_curve(folder, capsys) -> None:
    wrong = changed({"cases": {"row": {"changes": {"network": {"kind": "rwo"}}}}})
    (folder / "small.yaml").write_text(text(wrong))
    assert run("reproduce", "small.yaml", "--seeds", "1") == 2
    said = " ".join(capsys.readouterr().err.split())
    assert "case row, curve" in said
    assert "rwo" in said


# ---- the experiments of the library


@pytest.mark.parametrize(
    "path", sorted(experiments_folder().glob("*.yaml")), ids=lambda path: path.stem
)
def test_the_experiments_of_the_library_are_sound(path: Path, monkeypatch) -> None:
    monkeypatch.setattr("mtcd_experiments.plan.first_present", lambda names: names[0])
    monkeypatch.setattr("mtcd_experiments.plan.is_present", lambda name: True)
    experiment = read_experiment(path)
    if experiment.measure == "accuracy":
        pytest.importorskip("torch")
    if experiment.measure == "accuracy" and "epochs" not in StopSection.model_fields:
        pytest.skip("the config has no stop.epochs yet")
    for quick in (False, True):
        figure = plan_figure(path.stem, experiment, path.parent, None, quick)
        assert figure.curves
        assert find_experiments(path.stem) == [path]


def test_names_come_in_the_order_of_the_paper() -> None:
    assert [name for name in known_experiments() if name in FIGURES] == [
        n for n in FIGURES if n in known_experiments()
    ]
    with pytest.raises(ConfigError, match="no figure"):
        find_experiments("figure-99")


def test_the_example_in_the_docs_is_sound(tmp_path) -> None:
    example = DOCS.read_text(encoding="utf-8").split("```yaml\n")[1].split("```")[0]
    (tmp_path / "my.yaml").write_text(example)
    experiment = read_experiment(tmp_path / "my.yaml")
    for quick in (False, True):
        assert len(plan_figure("my", experiment, tmp_path, quick=quick).curves) == 4
