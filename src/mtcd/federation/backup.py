"""Backup of a stopped party: its bundle and its run folder in one file, and back.

A party must be stopped: the journal of a running one is out of date as soon as it is copied, and a
party that returns with an older journal is refused by the others (``node/rejoining.py``).
"""

from __future__ import annotations

import os
import shutil
import tarfile
import tempfile
from collections.abc import Iterator
from pathlib import Path, PurePosixPath

from mtcd.core.errors import ConfigError, MtcdError, system_reason
from mtcd.federation.delivery.journal import FileJournal
from mtcd.federation.node.folder import JOURNAL, LOCK, RunFolder

BUNDLE, RUN = "kit", "run"  # folders within a backup; "kit" is the name in the first ones
PARTY_FILE = "party.yaml"


def back_up(bundle: Path, file: Path, run: Path | None = None) -> bool:
    """Write the bundle, and the run folder if there is one, to a new file; returns whether there
    was one."""
    run = run or bundle / RUN
    if not (bundle / PARTY_FILE).is_file():
        raise ConfigError(f"{bundle} is not a bundle: there is no {PARTY_FILE} in it.")
    if file.exists() or file.is_symlink():
        raise ConfigError(f"{file} exists: give the name of a new file.")
    # A backup inside of what it contains would contain a part of itself.
    if any(file.absolute().is_relative_to(folder.absolute()) for folder in (bundle, run)):
        raise ConfigError(f"{file} is inside a folder that it is a backup of: give another place.")
    # The lock is held while files are copied, so that no party starts in the middle of it.
    lock = _locked(run) if run.is_dir() else None
    try:
        if lock is not None:
            # A journal that cannot be read again makes a useless backup. That is better known now
            # than when it is needed.
            FileJournal(run / JOURNAL).check()
        roots = {BUNDLE: bundle}
        if lock is not None:
            roots[RUN] = run
        files = {}
        for root, at in roots.items():
            for path in _files(at, run):
                files[f"{root}/{path.relative_to(at).as_posix()}"] = path
        _write(file, files)
    except OSError as error:
        raise MtcdError(f"{file} could not be written: {system_reason(error)}.") from None
    finally:
        if lock is not None:
            lock.close()
    return lock is not None


def restore(file: Path, bundle: Path) -> bool:
    """Make the bundle of a backup again, in a new or empty folder, atomically; returns whether it
    has a run folder."""
    if bundle.is_symlink() or (bundle.exists() and (not bundle.is_dir() or any(bundle.iterdir()))):
        raise ConfigError(
            f"{bundle} exists and is not an empty folder: choose another, or move it away."
        )
    bundle = bundle.absolute()
    aside = None
    try:
        bundle.parent.mkdir(parents=True, exist_ok=True)
        # readable by its owner only
        aside = Path(tempfile.mkdtemp(dir=bundle.parent, prefix=".mtcd-"))
        with tarfile.open(file, "r:") as tar:
            for member in tar:
                _extract(tar, member, aside, file)
        if not (aside / BUNDLE / PARTY_FILE).is_file():
            raise ConfigError(f"{file} is not a backup of a party: there is no {PARTY_FILE} in it.")
        has_run = (aside / RUN).is_dir()
        if has_run:
            # Checked while all is still aside: a damaged backup leaves no bundle with half a run.
            FileJournal(aside / RUN / JOURNAL).check()
            (aside / RUN).rename(aside / BUNDLE / RUN)
        os.replace(aside / BUNDLE, bundle)  # replaces an empty folder only
        return has_run
    # What tarfile raises for damaged files depends on which byte is wrong.
    except (tarfile.TarError, OverflowError, ValueError) as error:
        raise ConfigError(f"{file} is not a backup of a party: {error}.") from None
    except OSError as error:
        raise MtcdError(
            f"{file} could not be restored to {bundle}: {system_reason(error)}."
        ) from None
    finally:
        if aside is not None:
            shutil.rmtree(aside, ignore_errors=True)


def _write(file: Path, files: dict[str, Path]) -> None:
    """A tar file for its owner only, whole or not at all."""
    descriptor, aside = tempfile.mkstemp(dir=file.absolute().parent, prefix=".mtcd-")
    try:
        with os.fdopen(descriptor, "wb") as writing:
            with tarfile.open(fileobj=writing, mode="w") as tar:
                for name, path in files.items():
                    tar.add(path, name, recursive=False)
            writing.flush()
            os.fsync(writing.fileno())
        os.replace(aside, file)
    except BaseException:
        os.unlink(aside)
        raise


def _locked(run: Path) -> RunFolder:
    try:
        return RunFolder(run)
    except ConfigError as error:
        raise ConfigError(f"{error} A backup is made of a party that is stopped.") from None


def _files(folder: Path, run: Path) -> Iterator[Path]:
    """The files of a folder, in order, without the run folder in it, locks and what was left behind
    by a crash."""
    for path in sorted(folder.iterdir()):
        if path.is_symlink():
            raise ConfigError(
                f"{path} is a symbolic link, which no bundle and no run folder contains: remove it "
                "first."
            )
        if path.absolute() == run.absolute() or path.name == LOCK or path.name.startswith(".mtcd-"):
            continue
        if path.is_dir():
            yield from _files(path, run)
        else:
            yield path


def _extract(tar: tarfile.TarFile, member: tarfile.TarInfo, to: Path, file: Path) -> None:
    """One plain file, for its owner only, with its time: the limit ``stop.seconds`` counts from
    that of a file."""
    # Links and devices have no content here, and absolute paths or '..' would leave the folder: an
    # archive from elsewhere must not be able to write to other places of this host.
    place, content = PurePosixPath(member.name), tar.extractfile(member) if member.isreg() else None
    if (
        content is None
        or place.is_absolute()
        or ".." in place.parts
        or place.parts[:1] not in ((BUNDLE,), (RUN,))
    ):
        raise ConfigError(f"{file} is not a backup of a party: it contains {member.name!r}.")
    path = to / place
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    # O_EXCL refuses a name that comes twice in the archive.
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as target:
        shutil.copyfileobj(content, target)
        target.flush()
        os.fsync(target.fileno())
    os.utime(path, (member.mtime, member.mtime))
