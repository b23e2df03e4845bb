"""Draws are made once for a table, whoever asks and however often, and the account counts them."""

from __future__ import annotations

import json
import stat
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from commands import run
from mtcd.core.errors import ConfigError, DataError, MtcdError
from mtcd.privacy.labels.draws import SUFFIX, TableDraws
from mtcd.privacy.labels.settings import LabelDP
from mtcd.privacy.settings import LabelSource, label_privacy

LABELS = np.random.default_rng(0).integers(0, 2, 400)


def source(folder: Path, name: str = "table.csv") -> LabelSource:
    path = folder / name
    path.write_text("label\n")
    return LabelSource(path, holder="bank")


def account(folder: Path, name: str = "table.csv") -> Path:
    return folder / f"{name}{SUFFIX}"


def test_the_same_labels_have_the_same_draws_and_are_spent_once(tmp_path: Path) -> None:
    here = source(tmp_path)
    first = LabelDP(epsilon=1.0).released(LABELS, here)
    assert (first == LabelDP(epsilon=1.0).released(LABELS, here)).all()
    assert 0.15 < (first != LABELS).mean() < 0.4
    [one] = TableDraws(tmp_path / "table.csv").releases()
    assert (one.holder, one.epsilon, one.mechanism) == (
        "bank",
        1.0,
        "randomised response of [0, 1]",
    )


def test_another_process_has_the_same_draws(tmp_path: Path) -> None:
    first = LabelDP(epsilon=1.0).released(LABELS, source(tmp_path))
    program = f"""
import numpy as np
from pathlib import Path
from mtcd.privacy.settings import LabelSource, label_privacy
from mtcd.privacy.labels.settings import LabelDP
labels = np.array({LABELS.tolist()})
found = LabelDP(epsilon=1.0).released(labels, LabelSource(Path({str(tmp_path / "table.csv")!r})))
print("".join(map(str, found.tolist())))
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "".join(map(str, first.tolist()))


def test_other_settings_and_other_labels_have_independent_draws_that_add_up(tmp_path: Path) -> None:
    here, draws = source(tmp_path), TableDraws(tmp_path / "table.csv")
    weak = LabelDP(epsilon=1.0).released(LABELS, here)
    strong = LabelDP(epsilon=1.5).released(LABELS, here)
    assert draws.epsilon == 2.5
    # where draws were the same, a label that only the smaller epsilon flips would be certain
    p, q = np.exp(1) / (1 + np.exp(1)), 1 / (1 + np.exp(1.5))
    assert ((weak == LABELS) & (strong != LABELS)).mean() == pytest.approx(p * q, abs=0.09)

    changed = LABELS.copy()
    changed[0] = 1 - changed[0]
    other = LabelDP(epsilon=1.0).released(changed, here)
    assert 0.26 < (other[1:] != weak[1:]).mean() < 0.53
    assert draws.epsilon == 3.5


def test_two_tables_and_two_processes_have_draws_of_their_own(tmp_path: Path) -> None:
    one = LabelDP(epsilon=1.0).released(LABELS, source(tmp_path))
    two = LabelDP(epsilon=1.0).released(LABELS, source(tmp_path, "copy.csv"))
    assert (one != two).any()
    # of no file: for as long as this process runs
    memory = LabelDP(epsilon=1.0).released(LABELS, LabelSource())
    assert (memory == LabelDP(epsilon=1.0).released(LABELS, LabelSource())).all()
    assert (memory != one).any()
    assert "as long as this process runs" in LabelDP(epsilon=1.0).notes(LabelSource())[1]


def test_only_the_owner_reads_the_secret_and_labels_are_not_in_the_file(tmp_path: Path) -> None:
    LabelDP(epsilon=1.0).released(LABELS, source(tmp_path))
    assert stat.S_IMODE(account(tmp_path).stat().st_mode) == 0o600
    kept = json.loads(account(tmp_path).read_text())
    assert set(kept["releases"][0]) == {"began", "holder", "mechanism", "epsilon", "labels"}
    # a digest that is keyed: without the secret, it cannot be compared with guesses
    kept["secret"] = "00" * 32
    account(tmp_path).write_text(json.dumps(kept))
    LabelDP(epsilon=1.0).released(LABELS, source(tmp_path))
    first, second = TableDraws(tmp_path / "table.csv").releases()
    assert first.labels != second.labels


def test_a_file_that_cannot_be_read_is_not_replaced(tmp_path: Path) -> None:
    here = source(tmp_path)
    for content in ("{", '{"format": 2}', '{"format": 1, "secret": "00", "releases": []}'):
        account(tmp_path).write_text(content)
        with pytest.raises(MtcdError, match="cannot be read: .*Restore it from a backup"):
            LabelDP(epsilon=1.0).released(LABELS, here)
        assert account(tmp_path).read_text() == content


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    here = source(tmp_path)
    account(tmp_path).mkdir()
    with pytest.raises(ConfigError, match="cannot be written .*allow this user to write there"):
        LabelDP(epsilon=1.0).released(LABELS, here)


def test_a_table_that_is_not_there_is_kept_in_the_folder_that_is_given(tmp_path: Path) -> None:
    LabelDP(epsilon=1.0).released(LABELS, LabelSource(tmp_path / "gone.csv", tmp_path / "."))
    assert TableDraws(tmp_path / "gone.csv").epsilon == 1.0
    LabelDP(epsilon=1.0).released(LABELS, LabelSource(None, tmp_path / "checkpoint"))
    assert account(tmp_path / "checkpoint", "labels").exists()
    (tmp_path / "run").mkdir()
    LabelDP(epsilon=1.0).released(LABELS, LabelSource(tmp_path / "lost.csv", tmp_path / "run"))
    assert account(tmp_path / "run", "lost.csv").exists()
    assert not account(tmp_path, "lost.csv").exists()


def test_seeded_draws_repeat_are_not_counted_and_say_that_they_protect_nobody(
    tmp_path: Path,
) -> None:
    here = replace(source(tmp_path), holder="")
    seeded = LabelDP(epsilon=1.0, insecure_seeded_draws=True)
    found = seeded.released(LABELS, here)
    assert (found == seeded.released(LABELS, LabelSource())).all()
    assert not account(tmp_path).exists()
    assert "protects nobody" in seeded.notes(here)[1]


def test_the_command_shows_what_labels_have_spent(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    LabelDP(epsilon=1.25).released(LABELS, source(tmp_path))
    table = tmp_path / "table.csv"
    assert run("budget", str(table)) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "labels, randomised response of [0, 1], epsilon 1.25" in shown
    assert run("budget", "--json", str(table)) == 0
    facts = json.loads(capsys.readouterr().out)[0]
    assert facts["labels"]["epsilon"] == 1.25
    assert facts["trainings"] == []


def test_texts_values_and_declared_classes(tmp_path: Path) -> None:
    texts = np.array(["no", "yes", "perhaps"] * 100)
    found = LabelDP(epsilon=2.0).released(texts, LabelSource())
    assert found.dtype == texts.dtype
    assert set(found.tolist()) == {"no", "yes", "perhaps"}

    values = LabelDP(epsilon=8.0, range=(0, 10)).released(np.linspace(0, 10, 300), LabelSource())
    assert values.dtype == float
    assert np.corrcoef(values, np.linspace(0, 10, 300))[0, 1] > 0.7

    kept = LabelSource(tmp_path / "values.csv", tmp_path)
    LabelDP(epsilon=8.0, range=(0, 10)).released(np.linspace(0, 10, 300), kept)
    (release,) = TableDraws(tmp_path / "values.csv").releases()
    assert release.mechanism == "Laplace noise on 0.0 to 10.0"

    # a class that no sample has is released too, and one that was not declared counts as the first
    declared = LabelDP(epsilon=1.0, classes=[0, 1, 2])
    assert set(declared.released(LABELS, LabelSource()).tolist()) == {0, 1, 2}
    sure = LabelDP(epsilon=30.0, classes=[0, 1]).released(np.array([0, 1, 7] * 50), LabelSource())
    assert sure.tolist() == [0, 1, 0] * 50
    with pytest.raises(DataError, match="name the classes"):
        LabelDP(epsilon=1.0).released(np.zeros(9), LabelSource())
    same = LabelDP(epsilon=1.0, classes=(0.0, 1.0)).released(np.zeros(99), LabelSource())
    assert set(same.tolist()) == {0.0, 1.0}


def test_what_the_randomised_labels_do_not_allow_is_said() -> None:
    with pytest.raises(DataError, match="A class is not among the randomised labels of 2 samples"):
        LabelDP(epsilon=1.0, classes=[0, 1, 2]).released(np.array([0, 1]), LabelSource())
    with pytest.raises(DataError, match="these are texts"):
        LabelDP(epsilon=1.0, range=(0, 1)).released(np.array(["a", "b"]), LabelSource())


def test_an_account_with_fields_of_another_kind_ends_all_and_stays(tmp_path: Path) -> None:
    LabelDP(epsilon=1.0).released(LABELS, source(tmp_path))
    content = json.loads(account(tmp_path).read_text())
    [release] = content["releases"]
    release["holder"] = 3
    account(tmp_path).write_text(json.dumps(content))
    with pytest.raises(MtcdError, match="cannot be read"):
        TableDraws(tmp_path / "table.csv").releases()
    assert json.loads(account(tmp_path).read_text()) == content


def test_an_account_that_is_no_file_ends_all(tmp_path: Path) -> None:
    source(tmp_path)
    account(tmp_path).mkdir()  # as root may read any file, a folder stands for one that is denied
    with pytest.raises(MtcdError, match="cannot be read: Is a directory"):
        TableDraws(tmp_path / "table.csv").releases()


def test_an_installation_without_the_feature_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mtcd.privacy.settings.features.parts", lambda group: {})
    with pytest.raises(ConfigError, match="this installation of mtcd has none: leave it out"):
        label_privacy({"epsilon": 1.0})
