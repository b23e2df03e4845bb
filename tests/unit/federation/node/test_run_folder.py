"""Run folders that cannot be used: what is refused, and that nothing is written then."""

import json
import stat
from pathlib import Path

import pytest

from mtcd.core.errors import ConfigError
from mtcd.federation.node.folder import FINAL_CHECK, LOCK, VERSIONS, WRITTEN_BY, RunFolder
from mtcd.federation.node.opening import Agreed


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A folder in which a run was agreed."""
    folder = RunFolder(tmp_path / "run")
    folder.agree(Agreed("run1", {}, b"", b""))
    folder.confirm({"a"})
    folder.close()
    return tmp_path / "run"


def test_what_was_agreed_and_confirmed_is_read_again(run: Path) -> None:
    folder = RunFolder(run)
    agreed = folder.agreed()
    assert agreed[0].run == "run1"
    assert folder.confirmed() == {"a"}
    folder.close()


@pytest.mark.parametrize("name", ["log.jsonl", "journal.0", "anything"])
def test_a_folder_with_a_link_in_it_is_refused(name: str, run: Path, tmp_path: Path) -> None:
    """It may have come with a bundle, and would have this party write somewhere else."""
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_bytes(b"mine")
    (run / name).symlink_to(elsewhere)
    with pytest.raises(ConfigError, match=rf"{name} is a symbolic link.*another folder \(--out\)"):
        RunFolder(run)
    assert elsewhere.read_bytes() == b"mine"


def test_a_file_in_the_place_of_the_folder_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "run"
    file.write_bytes(b"mine")
    for path in (file, file / "below"):
        with pytest.raises(ConfigError, match=rf"{path} cannot be used \(.*another folder"):
            RunFolder(path)
    assert file.read_bytes() == b"mine"


@pytest.mark.parametrize("damage", [b"", b"nonsense", b"{}\n"])
def test_an_agreement_that_cannot_be_read_is_refused(damage: bytes, run: Path) -> None:
    """With another one, this party would train on other settings than the rest."""
    (run / "agreed.bin").write_bytes(damage)
    folder = RunFolder(run)
    with pytest.raises(ConfigError, match=r"agreed\.bin cannot be read: start all parties with"):
        folder.agreed()
    folder.close()


@pytest.mark.parametrize("damage", ["", "[", "7", "[[]]"])
def test_confirmations_that_cannot_be_read_are_refused(damage: str, run: Path) -> None:
    [path] = [path for path in run.iterdir() if path.read_bytes() == b'["a"]']
    path.write_text(damage)
    folder = RunFolder(run)
    with pytest.raises(ConfigError, match=rf"{path.name} cannot be read: start all parties with"):
        folder.confirmed()
    folder.close()


def test_what_is_kept_of_a_run_is_for_its_owner_only(run: Path) -> None:
    """It names the parties, and has the labels of everybody whom the agreement was made with."""
    version = run / WRITTEN_BY
    version.write_text(json.dumps({**VERSIONS, "mtcd": "0.0.1"}))
    folder = RunFolder(run)
    assert folder.agreed()[0].run == "run1"
    folder.keep_final_check(True, {"b", "a", "c"})
    assert folder.final_check() == (True, {"a", "b", "c"})
    folder.confirm({"c", "a", "b"})
    folder.close()
    assert json.loads(version.read_text()) == VERSIONS, "this version goes on with it"
    assert json.loads((run / FINAL_CHECK).read_text())["told"] == ["a", "b", "c"]
    written = [path for path in run.iterdir() if path.is_file()]
    assert len(written) >= 4
    assert {path.name: stat.S_IMODE(path.stat().st_mode) & 0o077 for path in written} == (
        dict.fromkeys([path.name for path in written], 0)
    )


def test_a_folder_and_its_lock_are_made_for_their_owner(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path / "new" / "run")
    folder.close()
    assert stat.S_IMODE(folder.path.stat().st_mode) == 0o700
    assert stat.S_IMODE((folder.path / LOCK).stat().st_mode) == 0o600
