"""Backups of parties: a restored party goes on where it was stopped, and nothing is restored in
part."""

import io
import shutil
import tarfile
from pathlib import Path

import pytest

from bundles_on_disk import found
from federation_commands import run
from mtcd.core.errors import MtcdError
from mtcd.federation.backup import _files, back_up, restore
from mtcd.federation.credentials.bundle import read_bundle
from mtcd.federation.node.folder import RunFolder
from restarting import Restarting


def test_a_restored_party_continues_where_it_was_stopped(tmp_path: Path) -> None:
    name, file, again = "c2", tmp_path / "c2.tar", tmp_path / "again"
    with Restarting(tmp_path, "stcd") as hub:
        hub.steps(100)
        bundle, run = hub.bundles[name].folder, hub.folder / name
        with pytest.raises(MtcdError, match=r"in use.*party that is stopped"):
            back_up(bundle, file, run)
        assert not file.exists()
        hub.end(name)
        began = (run / "agreed.bin").stat().st_mtime
        assert back_up(bundle, file, run)
        assert file.stat().st_mode & 0o777 == 0o600
        for folder in (bundle, run):
            shutil.rmtree(folder)
        assert restore(file, again)
        assert {path.stat().st_mode & 0o077 for path in [again, *again.rglob("*")]} == {0}
        assert (again / "run" / "agreed.bin").stat().st_mtime == pytest.approx(began, abs=1)
        shutil.move(again / "run", run)
        shutil.move(again, bundle)
        hub.bundles[name] = read_bundle(bundle)
        hub.start(name)
        hub.check_model()


def test_from_the_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bundle, file = found(tmp_path) / "a", tmp_path / "a.tar"
    before = {path.name: path.read_bytes() for path in bundle.iterdir()}

    for words, code, said in (
        (("backup", bundle, file), 0, ""),
        (("backup", bundle, file), 2, "exists"),
        (("restore", file, bundle), 2, "not an empty folder"),
    ):
        ended, _, err = run(capsys, *words)
        assert (ended, said in err) == (code, True)
    shutil.rmtree(bundle)
    assert run(capsys, "restore", file, bundle)[0] == 0
    assert {path.name: path.read_bytes() for path in bundle.iterdir()} == before
    read_bundle(bundle)


def test_what_cannot_be_backed_up_is_told(tmp_path: Path) -> None:
    bundle = found(tmp_path) / "a"
    for bad, file, told in [
        (tmp_path, tmp_path / "x.tar", "no party.yaml"),
        (bundle, bundle / "x.tar", "inside a folder"),
        (bundle, tmp_path / "none" / "x.tar", "could not be written"),
    ]:
        with pytest.raises(MtcdError, match=told):
            back_up(bad, file)
    run = RunFolder(bundle / "run")
    run.close()
    (bundle / "run" / "journal.1").write_bytes(b"x" * 100)
    with pytest.raises(MtcdError, match="damaged"):
        back_up(bundle, tmp_path / "x.tar")
    (bundle / "link").symlink_to("/etc/passwd")
    (bundle / "run" / "journal.1").unlink()
    with pytest.raises(MtcdError, match="symbolic link"):
        back_up(bundle, tmp_path / "x.tar")
    assert not [
        path
        for path in tmp_path.iterdir()
        if path.suffix == ".tar" or path.name.startswith(".mtcd-")
    ]


def member(
    name: str, kind: bytes = tarfile.REGTYPE, content: bytes = b"name: a"
) -> tuple[tarfile.TarInfo, bytes]:
    one = tarfile.TarInfo(name)
    one.type, one.linkname, one.size = (
        kind,
        "/etc/passwd",
        len(content) if kind == tarfile.REGTYPE else 0,
    )
    return one, content


@pytest.mark.parametrize(
    "bad",
    [
        member("../evil"),
        member("kit/../../evil"),
        member("/tmp/evil"),
        member("other/evil"),
        member("kit/link", tarfile.SYMTYPE),
        member("kit/hard", tarfile.LNKTYPE),
        member("kit/device", tarfile.CHRTYPE),
        member("kit/party.yaml"),
        member("run/journal.0", content=b"x" * 100),
    ],
    ids=lambda one: one[0].name,
)
def test_files_that_are_no_backups_restore_nothing(
    bad: tuple[tarfile.TarInfo, bytes], tmp_path: Path
) -> None:
    file, inside = tmp_path / "bad.tar", tmp_path / "inside"
    inside.mkdir()
    with tarfile.open(file, "w") as tar:
        for one, content in (member("kit/party.yaml"), bad):
            tar.addfile(one, io.BytesIO(content))
    with pytest.raises(MtcdError):
        restore(file, inside / "kit")
    whole = file.read_bytes()
    for cut in (b"", b"no tar", whole[:700]):
        file.write_bytes(cut)
        with pytest.raises(MtcdError):
            restore(file, inside / "kit")
    assert list(inside.iterdir()) == []
    assert sorted(tmp_path.iterdir()) == [file, inside]


def test_an_archive_without_a_bundle_is_no_backup(tmp_path: Path) -> None:
    file = tmp_path / "other.tar"
    one, content = member("kit/README.txt")
    with tarfile.open(file, "w") as tar:
        tar.addfile(one, io.BytesIO(content))
    with pytest.raises(MtcdError, match=r"is not a backup of a party: there is no party\.yaml"):
        restore(file, tmp_path / "again")
    assert list(tmp_path.iterdir()) == [file]


def test_the_files_of_a_backup_come_in_the_order_of_their_names(tmp_path: Path) -> None:
    """A folder gives them in any order; two backups of one moment are alike."""
    names = [f"m{number}" for number in range(30)]
    for name in names:
        (tmp_path / name).write_text("")
    assert [path.name for path in _files(tmp_path, tmp_path / "run")] == sorted(names)
