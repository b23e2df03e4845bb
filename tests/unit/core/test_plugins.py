"""Walks, losses, accelerations, combination rules and methods from outside the package, used by
their names."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from abc import ABCMeta, abstractmethod
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

import mtcd
import plugins_from_outside as outside
from commands import run
from mtcd.config.build import build, resolved_yaml
from mtcd.config.method_schema import method_section
from mtcd.config.read import check_config
from mtcd.core.errors import ConfigError
from mtcd.core.registry import Registry
from mtcd.methods.method import METHODS
from mtcd.methods.mtcd.combine import RULES
from mtcd.methods.tours.acceleration import ACCELERATIONS
from mtcd.models.glm.block_smoothness import BlockSmoothness
from mtcd.models.glm.config import linear_parts
from mtcd.models.losses import LOSSES
from mtcd.network.walks import WALKS
from mtcd.planner.candidates import Space

REGISTRIES: dict[str, Registry[Any]] = {
    "mtcd.walks": WALKS,
    "mtcd.losses": LOSSES,
    "mtcd.accelerations": ACCELERATIONS,
    "mtcd.combine": RULES,
    "mtcd.methods": METHODS,
}
PLUGINS = {
    "mtcd.walks": ("sleepy", "SleepyWalk"),
    "mtcd.losses": ("log-cosh", "LogCosh"),
    "mtcd.accelerations": ("heavy-ball", "HeavyBall"),
    "mtcd.combine": ("bolder", "Bolder"),
    "mtcd.methods": ("decaying", "Decaying"),
}
BASE: dict[str, Any] = {
    "data": {"synthetic": "ridge", "samples": 30, "features": 8, "clients": 4},
    "model": {"kind": "ridge", "alpha": 1},
    "network": {"kind": "cycle"},
    "stop": {"gap": 1e-3, "iterations": 20_000},
}
USES: dict[str, dict[str, Any]] = {
    "mtcd.walks": {"method": {"kind": "stcd", "walk": "sleepy"}},
    "mtcd.losses": {"model": {"kind": "log-cosh", "l2": 1}, "method": {"kind": "svfl"}},
    "mtcd.accelerations": {
        "method": {"kind": "stcd", "walk": "tour", "acceleration": "heavy-ball"}
    },
    "mtcd.combine": {"method": {"kind": "mtcd", "tokens": 2, "combine": "bolder", "hops": 4}},
    "mtcd.methods": {"method": {"kind": "decaying", "decay": 0.999, "local_updates": 4}},
}


@pytest.fixture(autouse=True)
def _registries_as_before() -> Iterator[None]:
    for registry in REGISTRIES.values():
        list(registry)
    before = {group: dict(registry._classes) for group, registry in REGISTRIES.items()}
    yield
    for group, registry in REGISTRIES.items():
        registry._classes.clear()
        registry._classes.update(before[group])


@pytest.fixture
def registered() -> None:
    for group, (name, made) in PLUGINS.items():
        REGISTRIES[group].register(name, getattr(outside, made))


def installed(folder: Path, points: dict[str, dict[str, str]], name: str = "own-plugins") -> Path:
    """A folder as pip leaves it: a package's metadata, with these entry points by group."""
    about = folder / f"{name.replace('-', '_')}-1.0.dist-info"
    about.mkdir(parents=True)
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    groups = (
        f"[{group}]\n" + "".join(f"{k} = {v}\n" for k, v in made.items())
        for group, made in points.items()
    )
    (about / "entry_points.txt").write_text("\n".join(groups))
    return folder


def config_for(group: str, folder: Path, **changes: Any) -> Path:
    path = folder / "config.yaml"
    path.write_text(yaml.safe_dump(BASE | USES[group] | changes))
    return path


@pytest.mark.long
@pytest.mark.usefixtures("registered")
@pytest.mark.parametrize("group", PLUGINS)
def test_registered_ones_train_by_their_names(group: str, tmp_path: Path) -> None:
    setup = build(check_config(BASE | USES[group]))
    trained = setup.train()
    assert trained.status == "converged"
    # what the run folder keeps repeats it
    again = build(check_config(yaml.safe_load(resolved_yaml(setup.config))))
    np.testing.assert_array_equal(again.train().coefficients, trained.coefficients)
    config = config_for(group, tmp_path)
    assert run("inspect", str(config), "--json") == 0
    assert run("train", str(config), "--out", str(tmp_path / "run"), "--quiet") == 0
    np.testing.assert_allclose(mtcd.load_run(tmp_path / "run").coefficients, trained.coefficients)


@pytest.mark.long
def test_installed_ones_train_and_are_inspected_from_the_command_line(tmp_path: Path) -> None:
    """In a process of its own: nobody has imported or registered anything there."""
    points = {group: {name: f"somebodys_plugins:{made}"} for group, (name, made) in PLUGINS.items()}
    site = installed(tmp_path / "site", points)
    shutil.copy(outside.__file__, site / "somebodys_plugins.py")
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(site), *sys.path])}
    script = (
        "import sys\nfrom mtcd.cli.app import main\nfor config in sys.argv[2:]:\n"
        "    try: main([sys.argv[1], config, '--json'])\n    except SystemExit as end: assert not "
        "end.code, config"
    )
    configs = []
    for group in PLUGINS:
        (tmp_path / group).mkdir()
        configs.append(str(config_for(group, tmp_path / group)))
    for command in ("inspect", "train"):
        done = subprocess.run(
            [sys.executable, "-c", script, command, *configs],
            env=environment,
            cwd=tmp_path,
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr
    assert done.stdout.count('"converged"') == len(PLUGINS)


@pytest.mark.usefixtures("registered")
def test_a_walk_brings_its_theory(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = config_for(
        "mtcd.walks", tmp_path, method={"kind": "mtcd", "hops": 3, "walk": "sleepy"}
    )
    assert run("inspect", str(config), "--json") == 0
    theory = json.loads(capsys.readouterr().out)["theory"]
    # two hops on a cycle of four: from there, from beside it (at once, or after a rest), from
    # across it
    assert theory["pi"]["value"] == pytest.approx(
        1 / 4 + 2 / 4 * (1 / 4 + 1 / 2 * 1 / 4) + 1 / 4 * (1 / 2 * 1 / 4)
    )
    # eigenvalues (1 + cos(2 pi i/4))/2
    assert theory["spectral_gap"]["value"] == pytest.approx(1 / 2)


@pytest.mark.usefixtures("registered")
def test_the_planner_tries_what_says_that_it_is_planned() -> None:
    setup = build(check_config(BASE))
    data, model = linear_parts(setup)
    problem = model.problem(data)
    space = Space(setup.network, BlockSmoothness(problem), setup.method.with_stepsize(1e-3), 1, 0)
    tried = list(space.candidates())
    assert {"sleepy", "bolder", "heavy-ball"} <= {
        getattr(m, key, None) for m in tried for key in ("walk", "combine", "acceleration")
    }


@pytest.mark.usefixtures("registered")
@pytest.mark.parametrize(
    ("method", "message"),
    [
        ({"decay": 0.9, "deacy": 1}, "unknown key 'method.deacy', did you mean 'decay'"),
        ({}, "the key 'method.decay' is missing"),
        ({"decay": "much"}, "method.decay: should be a valid number"),
        ({"decay": True}, "method.decay: should be a number"),
        ({"decay": 0.9, "local_updates": 1.5}, "method.local_updates: should be a valid integer"),
        ({"decay": 0.9, "labels": 3}, "method.labels: should be a valid list"),
    ],
)
def test_the_keys_of_a_method_from_outside_are_checked(
    method: dict[str, Any], message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        check_config(BASE | {"method": {"kind": "decaying", **method}})


@pytest.mark.usefixtures("registered")
def test_a_method_from_outside_has_its_own_defaults_and_notes() -> None:
    setup = build(check_config(BASE | {"method": {"kind": "decaying", "decay": 0.5, "hops": 3}}))
    assert setup.method == outside.Decaying(0.5, local_updates=2)
    assert setup.notes == ("decaying has no use for hops here: ignored.",)
    assert method_section(setup.method).model_dump(include={"decay", "kind"}) == {
        "kind": "decaying",
        "decay": 0.5,
    }
    assert setup.config.model_dump()["method"]["decay"] == 0.5
    assert yaml.safe_load(resolved_yaml(setup.config))["method"]["labels"] == ["plain"]


def test_a_setting_that_no_config_can_give_is_refused_in_words() -> None:
    def make(given: NotAWalk) -> mtcd.SVFL:
        return mtcd.SVFL()

    METHODS.register("odd", make)
    with pytest.raises(ConfigError, match="odd has settings that a config cannot give"):
        check_config(BASE | {"method": {"kind": "odd"}})


class NotAWalk:
    pass


class Unfinished(outside.Walk):
    pass


@pytest.mark.parametrize(
    ("name", "made", "message"),
    [
        ("own", NotAWalk, "must be a subclass of mtcd.network.walks.walk.Walk"),
        ("own", 3, "must be a subclass of mtcd.network.walks.walk.Walk"),
        (
            "own",
            lambda network: outside.SleepyWalk(network),
            "must be a subclass of mtcd.network.walks.walk.Walk",
        ),
        ("own", Unfinished, "does not define next"),
        (
            "lazy",
            outside.SleepyWalk,
            "'lazy' is taken by mtcd.network.walks.lazy.LazyWalk: choose another name",
        ),
        (" ", outside.SleepyWalk, "a name is a text"),
    ],
)
def test_bad_registrations_are_refused(name: str, made: Any, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        WALKS.register(name, made)


def test_all_that_a_class_lacks_is_named_in_order() -> None:
    """Names of abstract methods are a set, whose order changes from process to process."""
    names = ["begin", "close", "end", "open", "read", "write"]
    lacking = {name: abstractmethod(lambda self: None) for name in reversed(names)}
    base = ABCMeta("Store", (), dict(lacking))
    stores: Registry[Any] = Registry(base, "mtcd.stores", None, "no store is called '{}';")
    with pytest.raises(ConfigError, match="does not define begin, close, end, open, read, write"):
        stores.register("own", base)


def test_a_module_of_ours_that_is_missing_is_a_defect_and_no_part_less() -> None:
    WALKS._import_if_it_can_be("no_package_of_this_name.walk")
    with pytest.raises(ModuleNotFoundError):
        WALKS._import_if_it_can_be("mtcd.network.walks.no_walk_of_this_name")


@pytest.mark.parametrize("registry", REGISTRIES.values(), ids=REGISTRIES)
def test_names_are_listed_in_order(registry: Registry[Any]) -> None:
    names = list(registry)
    assert names == sorted(names)
    assert len(names) > 2


def test_a_name_of_ours_is_refused_before_ours_is_imported() -> None:
    script = (
        "import sys\nfrom mtcd.core.errors import ConfigError\nfrom mtcd.network.walks import "
        "WALKS, Walk\n"
        "assert 'mtcd.network.walks.lazy' not in sys.modules\n"
        "class Own(Walk):\n    def next(self, *way): return 0\n"
        "try: WALKS.register('lazy', Own)\nexcept ConfigError as error: print(error)\n"
        "print(WALKS['lazy'].__name__)"
    )
    shown = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    ).stdout
    assert "'lazy' is taken by mtcd.network.walks.lazy.LazyWalk" in shown
    assert shown.splitlines()[-1] == "LazyWalk"


def test_a_decorator_registers_too() -> None:
    @WALKS.register("own")
    class Own(outside.SleepyWalk):
        pass

    assert WALKS["own"] is Own
    assert "own" in WALKS
    assert "own" in list(WALKS)


def test_bad_entry_points_are_told_in_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    points = {
        "broken": "no_such_module_anywhere:Walk",
        "missing": "plugins_from_outside:NoSuchWalk",
        "raising": "raises_on_import:Walk",
        "leaving": "leaves_on_import:Walk",
        "wrong": "plugins_from_outside:LogCosh",
        "lazy": "plugins_from_outside:SleepyWalk",
        "twice": "plugins_from_outside:SleepyWalk",
    }
    site = installed(tmp_path, {"mtcd.walks": points})
    installed(tmp_path, {"mtcd.walks": {"twice": "elsewhere:Walk"}}, name="other-plugins")
    (site / "raises_on_import.py").write_text("raise RuntimeError('not today')")
    (site / "leaves_on_import.py").write_text("import sys; sys.exit(3)")
    monkeypatch.syspath_prepend(str(site))
    messages = {
        "broken": "the package own-plugins, cannot be loaded.*No module named.*update or uninstall",
        "missing": "cannot be loaded.*NoSuchWalk",
        "raising": "RuntimeError: not today",
        "leaving": "SystemExit: 3",
        "wrong": "must be a subclass of mtcd.network.walks.walk.Walk",
        "twice": "given twice, by .*own-plugins.*other-plugins|given twice, by .*other-plugins.*own-plugins",
        "brokn": "did you mean 'broken'.*Not used, as the name 'lazy' is taken",
    }
    for name, message in messages.items():
        with pytest.raises(ConfigError, match=message):
            mtcd.STCD(walk=name, stepsize=0.1).plan(10, 1, mtcd.make_network("path", ["a", "b"]), 0)
    # a plugin does not take the place of ours
    assert WALKS["lazy"].__module__ == "mtcd.network.walks.lazy"
    assert set(WALKS.usable()) == set(WALKS) - {
        "broken",
        "missing",
        "raising",
        "leaving",
        "wrong",
        "twice",
    }


def test_a_name_is_known_if_it_is_ours_registered_or_installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    points = {"mtcd.walks": {"spiral": "nowhere:Walk", "zigzag": "nowhere:Walk"}}
    monkeypatch.syspath_prepend(str(installed(tmp_path, points)))
    # installed, whether its code works or not
    assert "spiral" in WALKS
    assert "lazy" in WALKS
    for unknown in ("spirl", "", None, 3):
        assert unknown not in WALKS


def test_a_plugin_that_does_not_work_gives_the_command_line_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.syspath_prepend(
        str(installed(tmp_path, {"mtcd.methods": {"decaying": "no_such_module_anywhere:M"}}))
    )
    assert run("train", str(config_for("mtcd.methods", tmp_path)), "--json") == 2
    said = capsys.readouterr().err
    assert "own-plugins" in said
    assert "Traceback" not in said


def test_nothing_is_looked_for_as_long_as_names_are_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    def never(self: Registry[Any]) -> Any:
        raise AssertionError("entry points were looked for")

    monkeypatch.setattr(Registry, "_points", never)
    assert build(
        check_config(BASE | {"method": {"kind": "mtcd", "combine": "optimal", "walk": "tour"}})
    )
