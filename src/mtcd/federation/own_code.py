"""Network code in a federation: a party runs only files that its user has named or agreed to.

A federation file, which comes from the administrator, names networks as 'module:function'. Such a
name is never imported by Python's own import system: it is looked up among the given sources, and
must be a function or class that this file defines. The code is compiled from the bytes whose sha256
was shown; bytecode caches and other files are not used.
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

from mtcd.core.errors import ConfigError

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
    return module.partition(".")[0] in _installed()


@cache
def _installed() -> frozenset[str]:
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
class Source:
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

    def __init__(self, sources: Iterable[Source] = (), withheld: Sequence[Source] = ()) -> None:
        self.sources: Mapping[str, Source] = {source.module: source for source in sources}
        self.withheld = tuple(withheld)
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
            hint = (
                f" {self._how_to_agree()}"
                if isinstance(error, ImportError) and self.withheld
                else ""
            )
            raise ConfigError(
                f"{where}: {source.path} cannot be loaded ({type(error).__name__}: {error}).{hint}"
            ) from None
        return _defined_in(loaded, function, f"{where}: {name!r}", source)

    def source_of(self, name: str, where: str) -> Source:
        """The file that defines a name."""
        module, _ = split_name(name, where)
        if module in self.sources:
            return self.sources[module]
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
        others = [finder for finder in sys.meta_path if not isinstance(finder, OwnCode)]
        tops = {module.partition(".")[0] for module in self.sources}
        for name, module in list(sys.modules.items()):
            loader = getattr(getattr(module, "__spec__", None), "loader", None)
            if loader is not self and (
                isinstance(loader, OwnCode) or name.partition(".")[0] in tops
            ):
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
        compiled: CodeType = compile(source.content, str(source.path), "exec", dont_inherit=True)
        return compiled

    def is_package(self, fullname: str) -> bool:
        return self.sources[fullname].is_package


NO_CODE = OwnCode()


def _defined_in(module: ModuleType, function: str, what: str, source: Source) -> Callable[..., Any]:
    found: Any = vars(module).get(function)
    if found is None:
        raise ConfigError(f"{what}: {source.path} has no function {function!r}.")
    if not (inspect.isfunction(found) or inspect.isclass(found)):
        raise ConfigError(f"{what}: it is not a function or class that makes a module.")
    if found.__module__ != module.__name__:
        raise ConfigError(
            f"{what} is only imported there, from {found.__module__}: in a federation, "
            f"{source.path.name} itself must define the function or class that makes a network."
        )
    made: Callable[..., Any] = found
    return made
