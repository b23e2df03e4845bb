"""Real processes of two versions in one federation: the wheel of an earlier commit, and this
checkout."""

import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from federations import written
from mtcd.core.version import JOURNAL_FORMAT, PROTOCOL, VERSION
from mtcd.federation.administrator import init_federation
from mtcd.federation.delivery.journal import FIELDS
from mtcd.federation.participant.keeping import read_summary
from mtcd.federation.processes import Processes
from mtcd.models.glm.party.block import read_block
from ports import reserved_ports
from project import ROOT
from waiting import PATIENCE, until

OLD = os.environ.get("MTCD_OLD", "f995f67cd812fd825e0b1b94b2b7d63cd999b040")
"""An older commit of the same protocol and journal format. Pin a newer one when either is counted
up."""
NAMES = ("a", "b", "c", "d")
CYCLE = [["a", "b"], ["b", "c"], ["c", "d"], ["d", "a"]]
FASTER: dict[str, Any] = {"stepsize": "auto", "local_updates": 5}
MORE = 40  # commits that a party makes in a moment
WRAPPER = """
import sys
import mtcd.core.version
mtcd.core.version.PROTOCOL += 1
mtcd.core.version.VERSION = "9.9"
from mtcd.cli.app import main
main(sys.argv[4:])  # after: python -m mtcd
"""


@pytest.fixture(scope="module")
def old(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the package of the old version, installed from its wheel without its
    dependencies."""
    folder = tmp_path_factory.mktemp("old")
    if subprocess.run(
        ["git", "cat-file", "-e", f"{OLD}^{{commit}}"], cwd=ROOT, capture_output=True
    ).returncode:
        pytest.skip(
            f"commit {OLD} is not in this clone, which may be shallow: git fetch --unshallow"
        )
    source = folder / "source"
    source.mkdir()
    archive = subprocess.run(
        ["git", "archive", OLD], cwd=ROOT, check=True, capture_output=True
    ).stdout
    subprocess.run(["tar", "-x", "-C", str(source)], input=archive, check=True)
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, "wheel", "--no-deps", "-w", str(folder), str(source)], check=True)
    (wheel,) = folder.glob("*.whl")
    subprocess.run(
        [*pip, "install", "--no-deps", "--target", str(folder / "package"), str(wheel)], check=True
    )
    return folder / "package"


def as_old(package: Path) -> list[str]:
    """What to put before a command, so that it runs the old version."""
    return ["env", f"PYTHONPATH={package}"]


class Mixed(Processes):
    """Parties that can be stopped and started again in another version."""

    def __init__(self, folder: Path, server: bool) -> None:
        folder.mkdir(exist_ok=True)
        draw = np.random.default_rng(0)
        self.X, self.y = draw.standard_normal((200, 2 * len(NAMES))), draw.standard_normal(200)
        tables = {name: folder / f"{name}.csv" for name in NAMES}
        for k, (name, table) in enumerate(tables.items()):
            columns = {"one": self.X[:, 2 * k], "two": self.X[:, 2 * k + 1]} | (
                {"y": self.y} if name == "a" else {}
            )
            pl.DataFrame(columns).write_csv(table)
        places = [f"127.0.0.1:{port}" for port in reserved_ports(5)]
        file = written(
            folder,
            parties=dict(zip(NAMES, places, strict=False)),
            server=places[-1] if server else None,
            labels={"held_by": "a", "column": "y", "shared_with": "parties"},
            network={"links": CYCLE},
            alignment="given order",
            model={"kind": "ridge", "alpha": 1.0, "intercept": False},
            method={"kind": "mtcd", "tokens": 1, "hops": 8, **FASTER}
            if server
            else {"kind": "stcd", **FASTER},
            stop={"iterations": 10**9},
        )
        init_federation(file, folder / "bundles", 2)
        self.said: list[str] = []
        super().__init__(folder / "bundles", tables, self.said.append, {})

    def change(self, name: str, number: int, prefix: list[str]) -> None:
        """Stop a party with a signal, and start it again in its folder, in another version."""
        self.signal(name, number)
        self.running.pop(name).wait(PATIENCE)
        self.prefix = {**self.prefix, name: prefix}
        self.start(name)

    def commits(self, name: str) -> int:
        """The number of the last commit in the journal of a party, as its header says."""
        files = [self.bundles / name / "run" / f"journal.{i}" for i in range(2)]
        heads = [file.read_bytes()[: FIELDS.size] for file in files if file.exists()]
        return max(
            (FIELDS.unpack(head)[1] for head in heads if len(head) == FIELDS.size), default=0
        )

    def progress(self, commits: int = MORE) -> None:
        """Wait until everybody has made so many commits more."""
        before = {name: self.commits(name) for name in self.running}
        assert until(
            lambda: all(self.commits(name) >= before[name] + commits for name in before)
        ), self.said[-20:]

    def stop(self, prefix: list[str]) -> None:
        command = [
            *prefix,
            sys.executable,
            "-m",
            "mtcd",
            "federation",
            "stop",
            str(self.bundles / "operator"),
        ]
        subprocess.run(command, check=True, capture_output=True)
        assert set(self.wait(PATIENCE).values()) == {0}, self.said[-20:]


@pytest.fixture(params=[True, False], ids=["mtcd", "stcd"])
def mixed(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Mixed]:
    processes = Mixed(tmp_path, request.param)
    try:
        yield processes
    finally:
        processes.end()


def test_old_and_new_parties_train_together_while_they_are_exchanged(
    mixed: Mixed, old: Path
) -> None:
    where = [
        *as_old(old),
        sys.executable,
        "-c",
        "import mtcd.core.version as v; print(v.__file__, v.PROTOCOL, v.JOURNAL_FORMAT)",
    ]
    path, *numbers = subprocess.check_output(where, text=True).split()
    assert Path(path).is_relative_to(old)
    if list(map(int, numbers)) != [PROTOCOL, JOURNAL_FORMAT]:
        ours = f"this version {PROTOCOL} and {JOURNAL_FORMAT}"
        pytest.fail(
            f"{OLD} has protocol and journal format {' and '.join(numbers)}, {ours}: pin a newer "
            f"commit"
        )
    names = [*NAMES, "server"] if (mixed.bundles / "server").exists() else [*NAMES]
    mixed.prefix = {name: as_old(old) for name in ("b", "c", "server")}
    mixed.start(*names)
    mixed.progress()
    mixed.change("b", signal.SIGTERM, [])  # upgraded
    mixed.progress()
    mixed.change("d", signal.SIGKILL, as_old(old))  # and back
    mixed.progress()
    for name in names[4:]:
        mixed.change(name, signal.SIGKILL, [])
        mixed.progress()
    mixed.change("a", signal.SIGKILL, as_old(old))
    mixed.progress(300)
    mixed.stop([])
    found = np.concatenate([read_block(mixed.bundles / name / "run").theta for name in NAMES])
    best = np.linalg.solve(mixed.X.T @ mixed.X + np.eye(8), mixed.X.T @ mixed.y)
    np.testing.assert_allclose(found, best, rtol=1e-6, atol=1e-9)
    assert {read_summary(mixed.bundles / name / "run").status for name in names} == {"stopped"}


@pytest.mark.parametrize("mixed", [False], indirect=True)
def test_another_protocol_is_refused_at_both_sides(mixed: Mixed, tmp_path: Path) -> None:
    wrapper = tmp_path / "newer.py"
    wrapper.write_text(WRAPPER)
    mixed.prefix = {"b": [sys.executable, str(wrapper)]}
    mixed.start("b")
    assert mixed.running["b"].wait(PATIENCE) == 2
    numbers = rf"for protocol {PROTOCOL}, but this version of mtcd \(9\.9\) speaks {PROTOCOL + 1}"
    assert until(lambda: re.search(numbers, " ".join(mixed.said)))
    party = mixed.bundles / "b" / "party.yaml"
    party.write_text(
        party.read_text().replace(f"protocol: {PROTOCOL}", f"protocol: {PROTOCOL + 1}")
    )
    mixed.start(*NAMES)
    theirs, ours = (
        f"b speaks protocol {PROTOCOL + 1} (mtcd 9.9)",
        f"speaks protocol {PROTOCOL} (mtcd {VERSION})",
    )
    for name in ("a", "c"):
        at_name, at_b = (
            f" {name}: {theirs}, {name} {ours}: upgrade mtcd at {name}",
            f" b: {name} {ours}, {theirs}",
        )
        assert until(lambda at=at_name: any(at in line for line in mixed.said)), mixed.said
        assert until(
            lambda at=at_b, to=name: any(at in line and f"at {to}," in line for line in mixed.said)
        ), mixed.said
    assert not any("Training." in line for line in mixed.said)


@pytest.mark.parametrize("mixed", [True], indirect=True, ids=["mtcd"])
def test_a_backup_is_good_until_the_party_runs_again(mixed: Mixed) -> None:
    def command(*words: object) -> None:
        subprocess.run(
            [sys.executable, "-m", "mtcd", "federation", *map(str, words)],
            check=True,
            capture_output=True,
        )

    bundle, file = mixed.bundles / "b", mixed.bundles / "b.tar"
    mixed.start(*NAMES, "server")
    mixed.progress()
    mixed.signal("b", signal.SIGTERM)
    mixed.running.pop("b").wait(PATIENCE)
    command("backup", bundle, file)
    for worked in (True, False):  # the second time, b has run since
        shutil.rmtree(bundle)
        command("restore", file, bundle)
        mixed.start("b")
        if worked:
            mixed.progress()
            mixed.kill("b")
    assert mixed.running.pop("b").wait(PATIENCE) == 2
    assert until(
        lambda: any("remembers messages of b that this folder lacks" in line for line in mixed.said)
    )
    assert any("b has come back without" in line and " b: " not in line for line in mixed.said)
