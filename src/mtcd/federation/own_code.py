"""Network code in a federation: a party runs only files that its user has named or agreed to.

A federation file, which comes from the administrator, names networks as 'module:function'. Such a
name is never imported by Python's own import system: it is looked up among the given sources, and
must be a function or class that this file defines. The sources are files named on the command line
of the party, and files of its bundle to which it agrees by their hash. The code is compiled from
the bytes whose sha256 was shown; bytecode caches and other files are not used.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.metadata
import importlib.util
import inspect
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from importlib.abc import InspectLoader, MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

from mtcd.config.schema import ModelSection
from mtcd.core.errors import ConfigError, raised_as
from mtcd.federation.credentials.bundle_schema import BundleConfig
from mtcd.federation.participant.kinds import party_kind

_OWN_NAME = re.compile(r"([A-Za-z]\w*(?:\.[A-Za-z]\w*)*):([A-Za-z]\w*)", re.ASCII)
FOLDER = "code"
"""The folder of a bundle with network code, which runs after the party has agreed to it."""


def split_name(name: str, where: str) -> tuple[str, str]:
    """The module and the function of 'module:function', the only form of names in a federation."""
    found = _OWN_NAME.fullmatch(name)
    if found is None:
        raise ConfigError(
            f"{where}: {name!r} is not of the form module:function, such as mynets:make_client, "
            "with plain names."
        )
    return found[1], found[2]


def is_installed(module: str) -> bool:
    """Whether the name belongs to Python itself or to an installed package, without importing
    it."""
    # The first part of a dotted name decides: a submodule belongs to the package.
    return module.partition(".")[0] in _installed()


@cache
def _installed() -> frozenset[str]:
    # Asking for the distributions reads the metadata of every installed package, hence the cache.
    return frozenset(
        {"mtcd", *sys.stdlib_module_names, *importlib.metadata.packages_distributions()}
    )


def refuse_installed(name: str, where: str) -> None:
    """Refuse the name of a function that is in an installed package."""
    module, _ = split_name(name, where)
    if is_installed(module):
        raise ConfigError(
            f"{where}: {name!r} is in Python or an installed package, which a federation never "
            "runs by name. Use a built-in network, or a function in a file that every party has, "
            "such as mynets:make_client, which may call installed packages: mtcd party BUNDLE "
            "--code mynets.py"
        )


@dataclass(frozen=True)
class SourceFile:
    """A Python file, read once: the bytes that are hashed are those that run."""

    module: str
    path: Path
    content: bytes
    is_package: bool = False

    @property
    def sha256(self) -> str:
        """The SHA-256 of the file, as ``sha256sum`` prints it."""
        return hashlib.sha256(self.content).hexdigest()


class OwnCode(MetaPathFinder, InspectLoader):
    """The sources that may run here. ``withheld`` are those in the bundle to which the party has
    not agreed."""

    def __init__(
        self, sources: Iterable[SourceFile] = (), withheld: Sequence[SourceFile] = ()
    ) -> None:
        self.sources: Mapping[str, SourceFile] = {source.module: source for source in sources}
        self.withheld = tuple(withheld)
        # Otherwise a file `numpy.py` would take the place of NumPy for all code that is imported
        # later.
        for source in self.sources.values():
            if is_installed(source.module):
                top = source.module.partition(".")[0]
                raise ConfigError(
                    f"{source.path}: {top!r} is the name of an installed package: rename your file."
                )

    def load(self, name: str, where: str) -> Callable[..., Any]:
        """Load the function or class of a name; ``where`` is the prefix of errors."""
        module, function = split_name(name, where)
        source = self.source_of(name, where)
        try:
            with self._found_first():
                loaded = importlib.import_module(module)
        except (Exception, SystemExit) as error:  # a module may raise anything when it is imported
            hint = ""
            if isinstance(error, ImportError) and self.withheld:
                # The missing module may be one of those that the party has not agreed to.
                hint = f" {self._how_to_agree()}"
            raise ConfigError(
                f"{where}: {source.path} cannot be loaded ({type(error).__name__}: {error}).{hint}"
            ) from None
        return _defined_in(loaded, function, f"{where}: {name!r}", source)

    def source_of(self, name: str, where: str) -> SourceFile:
        """The file that defines a name."""
        module, _ = split_name(name, where)
        if module in self.sources:
            return self.sources[module]
        # Said before the general error: the code is here, and only the consent is missing.
        if any(source.module == module for source in self.withheld):
            raise ConfigError(
                f"{where}: {name!r} is code in the bundle, which runs only if you agree. "
                f"{self._how_to_agree()}"
            )
        refuse_installed(name, where)
        file = f"{module.replace('.', '/')}.py"
        raise ConfigError(
            f"{where}: there is no code for {name!r} here. Get {file} from a source that you "
            f"trust, read it, and name it when you start: --code {file}"
        )

    def _how_to_agree(self) -> str:
        options = " ".join(f"--agree-code {source.sha256}" for source in self.withheld)
        return (
            f"Read {', '.join(str(source.path) for source in self.withheld)}; if you agree, start "
            f"with: {options}"
        )

    @contextmanager
    def _found_first(self) -> Iterator[None]:
        """Put this finder first, so that these modules are found here also when they import each
        other. Afterwards it is the last one: a function may import when it is called.
        """
        # Of an earlier federation in the same process (tests, notebooks); its sources must not be
        # found.
        others = [finder for finder in sys.meta_path if not isinstance(finder, OwnCode)]
        tops = {module.partition(".")[0] for module in self.sources}
        # A module of the same name that was imported before, from another place, would be taken
        # from `sys.modules`, and code that nobody has agreed to would run.
        for name, module in list(sys.modules.items()):
            loader = getattr(getattr(module, "__spec__", None), "loader", None)
            ours = isinstance(loader, OwnCode) or name.partition(".")[0] in tops
            if loader is not self and ours:
                del sys.modules[name]
        sys.meta_path[:] = [self, *others]
        try:
            yield
        finally:
            sys.meta_path[:] = [*others, self]

    # The interfaces of a finder and of a loader

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        source = self.sources.get(fullname)
        if source is None:
            return None
        spec = ModuleSpec(fullname, self, origin=str(source.path), is_package=source.is_package)
        spec.has_location = True
        return spec

    def get_source(self, fullname: str) -> str:
        return importlib.util.decode_source(self.sources[fullname].content)

    def get_code(self, fullname: str) -> CodeType:
        source = self.sources[fullname]
        # Compiled from the bytes that were hashed. A .pyc file beside the source could hold other
        # code.
        compiled: CodeType = compile(source.content, str(source.path), "exec", dont_inherit=True)
        return compiled

    def is_package(self, fullname: str) -> bool:
        return self.sources[fullname].is_package


NO_CODE = OwnCode()


def _defined_in(
    module: ModuleType, function: str, what: str, source: SourceFile
) -> Callable[..., Any]:
    found: Any = vars(module).get(function)
    if found is None:
        raise ConfigError(f"{what}: {source.path} has no function {function!r}.")
    if not (inspect.isfunction(found) or inspect.isclass(found)):
        raise ConfigError(f"{what}: it is not a function or class that makes a module.")
    # An imported function lies in a file whose hash was never shown.
    if found.__module__ != module.__name__:
        raise ConfigError(
            f"{what} is only imported there, from {found.__module__}: in a federation, "
            f"{source.path.name} itself must define the function or class that makes a network."
        )
    made: Callable[..., Any] = found
    return made


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
    # Two files of one module name: which of them runs would depend on the order of the options.
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise ConfigError(f"--code: {twice!r} is given twice.")
    # A package that the party names itself replaces all of that package in the bundle: a mixture of
    # both is what nobody has read.
    tops = {name.partition(".")[0] for name in names}
    inside = []
    for source in _below(bundle / FOLDER, ""):
        if source.module.partition(".")[0] not in tops:
            inside.append(source)
    accepted = {_sha256(text) for text in agreed}
    # A hash that fits nothing is an error and not ignored: the file was changed after it was read.
    if strange := accepted - {source.sha256 for source in inside}:
        there = "; ".join(f"{source.path} {source.sha256}" for source in inside)
        if not there:
            there = f"no code in {bundle / FOLDER}"
        raise ConfigError(
            f"--agree-code {min(strange)}: no code in the bundle has this sha256, so it is not "
            f"what you agreed to. The bundle has: {there}."
        )
    withheld = [source for source in inside if source.sha256 not in accepted]
    return OwnCode([*own, *(source for source in inside if source.sha256 in accepted)], withheld)


def _given(path: Path) -> list[SourceFile]:
    """The sources of a file (a module) or of a folder with an __init__.py (a package)."""
    path = path.absolute()
    if path.is_dir() and (path / INIT).is_file() and path.name.isidentifier():
        return _below(path, f"{path.name}.")
    if path.suffix != ".py" or not path.stem.isidentifier():
        raise ConfigError(
            f"--code {path}: name a Python file such as mynets.py, or the folder of a package."
        )
    return [_source(path.stem, path)]


def _below(folder: Path, prefix: str) -> list[SourceFile]:
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


def _source(module: str, path: Path) -> SourceFile:
    with raised_as(f"The code {path} cannot be read", ConfigError):
        return SourceFile(module, path, path.read_bytes(), path.name == INIT)


def _sha256(text: str) -> str:
    digest = text.strip().lower()
    if len(digest) != SHA256 or not set(digest) <= set("0123456789abcdef"):
        raise ConfigError(
            f"--agree-code {text}: give the whole sha256 of the file, {SHA256} digits."
        )
    return digest
