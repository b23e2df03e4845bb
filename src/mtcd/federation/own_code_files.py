"""The network code that a party runs: files named on its command line, and files of its bundle to
which it agrees."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from mtcd.config.schema import ModelSection
from mtcd.core.errors import ConfigError
from mtcd.federation.credentials.bundle_schema import BundleConfig
from mtcd.federation.own_code import FOLDER, NO_CODE, OwnCode, Source, refuse_installed
from mtcd.federation.participant.kinds import party_kind

INIT = "__init__.py"
SHA256 = 64  # hexadecimal digits


def own_names(model: ModelSection) -> dict[str, str]:
    """The networks of the model that are not built in, by key."""
    return party_kind(model).own_networks(model)


def built_in_only(model: ModelSection) -> ModelSection:
    """The model with custom networks replaced by built-in ones, to check all else without running
    their code."""
    return party_kind(model).built_in_only(model)


def check_own_names(model: ModelSection) -> None:
    """Refuse names that no party can load, and ``model.code``: each party names its own files."""
    for key, name in own_names(model).items():
        refuse_installed(name, f"model.{key}")
    if getattr(model, "code", None) is not None:
        raise ConfigError(
            "model.code: a federation file cannot name a party's code. Leave it out: each party "
            "names its own file when it starts, mtcd party BUNDLE --code mynets.py"
        )


def read_code(
    config: BundleConfig, bundle: Path, given: Sequence[Path] = (), agreed: Sequence[str] = ()
) -> OwnCode:
    """The code that the party may run: its own files or packages, ``given``, and those in the
    bundle, by hash."""
    check_own_names(config.model)
    if not own_names(config.model):
        if given or agreed:
            raise ConfigError(
                "This federation uses built-in networks only, so no code is run: leave --code and "
                "--agree-code out."
            )
        return NO_CODE
    own = [source for path in given for source in _given(path)]
    names = [source.module for source in own]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise ConfigError(f"--code: {twice!r} is given twice.")
    tops = {name.partition(".")[0] for name in names}
    inside = [
        source
        for source in _below(bundle / FOLDER, "")
        if source.module.partition(".")[0] not in tops
    ]
    accepted = {_sha256(text) for text in agreed}
    if strange := accepted - {source.sha256 for source in inside}:
        there = (
            "; ".join(f"{source.path} {source.sha256}" for source in inside)
            or f"no code in {bundle / FOLDER}"
        )
        raise ConfigError(
            f"--agree-code {min(strange)}: no code in the bundle has this sha256, so it is not "
            f"what you agreed to. The bundle has: {there}."
        )
    withheld = [source for source in inside if source.sha256 not in accepted]
    return OwnCode([*own, *(source for source in inside if source.sha256 in accepted)], withheld)


def _given(path: Path) -> list[Source]:
    """The sources of a file (a module) or of a folder with an __init__.py (a package)."""
    path = path.absolute()
    if path.is_dir() and (path / INIT).is_file() and path.name.isidentifier():
        return _below(path, f"{path.name}.")
    if path.suffix != ".py" or not path.stem.isidentifier():
        raise ConfigError(
            f"--code {path}: name a Python file such as mynets.py, or the folder of a package."
        )
    return [_source(path.stem, path)]


def _below(folder: Path, prefix: str) -> list[Source]:
    """All modules in a folder, but for files that cannot be imported (invalid names, missing
    packages)."""
    found = []
    for path in sorted(folder.rglob("*.py")):
        inside = path.relative_to(folder)
        packages = [folder / parent for parent in inside.parents if parent.name]
        parts = [*inside.parts[:-1], *([] if path.name == INIT else [path.stem])]
        module = f"{prefix}{'.'.join(parts)}".removesuffix(".")
        if (
            module
            and all(map(str.isidentifier, parts))
            and all((one / INIT).is_file() for one in packages)
        ):
            found.append(_source(module, path))
    return found


def _source(module: str, path: Path) -> Source:
    try:
        return Source(module, path, path.read_bytes(), path.name == INIT)
    except OSError as error:
        raise ConfigError(f"The code {path} cannot be read: {error.strerror or error}.") from None


def _sha256(text: str) -> str:
    digest = text.strip().lower()
    if len(digest) != SHA256 or not set(digest) <= set("0123456789abcdef"):
        raise ConfigError(
            f"--agree-code {text}: give the whole sha256 of the file, {SHA256} digits."
        )
    return digest
