"""Code of the user's own, which a config names as 'module:Class': it runs only where a person asked
for that.

``mtcd train``, ``mtcd path``, ``mtcd cv`` and ``mtcd reproduce`` run it, as the user has started a
training; ``mtcd inspect`` and ``mtcd plan`` only with ``--run-code``, ``mtcd.load_run`` only with
``run_code=True``. Federations never load such a name: what others wrote does not choose the code of
a party (:mod:`mtcd.federation.own_code` has the rules for networks).
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from traceback import walk_tb
from typing import Any

from mtcd.core.errors import ConfigError, MtcdError

# A context variable, so that permission in one thread is none in another. None: nothing may run.
_folder: ContextVar[Path | None] = ContextVar("folder of the user's code", default=None)

# The modules, or packages, of names that were loaded: an error that passed one of them is theirs.
_imported: set[str] = set()


def is_own(name: object) -> bool:
    """Whether this names code: a built-in or registered name has no colon.

    >>> is_own("mymodule:HubAverse"), is_own("lazy")
    (True, False)
    """
    return isinstance(name, str) and ":" in name


@contextmanager
def running_code(folder: Path | None = None) -> Iterator[None]:
    """The context in which names in configs may run code; it is looked for in ``folder`` first.

    An error in that code becomes one that names its file and line.
    """
    # The working directory as long as nothing else is known; ``look_in`` changes it.
    before = _folder.set(folder or Path.cwd())
    try:
        yield
    except MtcdError:
        raise
    except Exception as error:
        place = _own_place(error)
        if place is None:  # a defect of this library: its traceback tells more
            raise
        raise MtcdError(
            f"{place}: {type(error).__name__}: {error}. This is code that the config names: "
            f"correct it."
        ) from error
    finally:
        _folder.reset(before)


def _own_place(error: Exception) -> str | None:
    """The innermost place in the user's code that an error passed."""
    place = None
    for frame, line in walk_tb(error.__traceback__):  # from the outermost inwards
        if frame.f_globals.get("__name__", "").partition(".")[0] in _imported:
            place = f"{frame.f_code.co_filename}, line {line}, in {frame.f_code.co_name}"

    return place


def look_in(folder: Path) -> None:
    """Look for code in this folder first from now on, where code may run at all."""
    if _folder.get() is not None:
        _folder.set(folder)


def may_run() -> bool:
    """Whether names in configs may run code here."""
    return _folder.get() is not None


def load(name: str, where: str) -> Any:
    """The object of a name, from the user's folder; refused outside :func:`running_code`."""
    folder = _folder.get()
    if folder is None:
        # Refused, not ignored: what a config asks for and does not get would go unnoticed.
        raise ConfigError(
            f"{where}: {name!r} is code of somebody's own, which does not run here. Read it; if "
            "you trust it, use it with mtcd train, with mtcd inspect or plan and --run-code, or "
            "load_run(folder, run_code=True). In Python, register the class; in a federation, "
            "every party installs it as a plugin (CONTRIBUTING.md)."
        )

    return imported(name, where, [folder, Path.cwd()])


def imported(name: str, where: str, folders: Sequence[Path]) -> Any:
    """Import the object of a name, from these folders first, then from installed packages. This
    runs its code."""
    module, _, path = name.partition(":")
    top = module.partition(".")[0]
    try:
        # Two studies in one process may each have a ``model.py``.
        _forget(top, folders)
        with _importable(folders):
            found: Any = importlib.import_module(module)
            if top != "mtcd":  # a name may be one of this library, whose errors are its own
                _imported.add(top)
            for part in path.split("."):
                found = getattr(found, part)
    # ``SystemExit`` too: a script without a guard ends the program when it is imported.
    except (Exception, SystemExit) as error:  # the user's code may raise anything
        raise ConfigError(
            f"{where}: {name!r} cannot be imported ({type(error).__name__}: {error})."
        ) from None
    return found


def _forget(name: str, folders: Sequence[Path]) -> None:
    """Forget an imported module of that name from elsewhere, which would shadow the one in these
    folders."""
    known = getattr(sys.modules.get(name), "__file__", None)
    wanted = _file_of(name, folders)
    if known is None or wanted is None or Path(known).resolve() == wanted:
        return

    for module in list(sys.modules):
        if module == name or module.startswith(f"{name}."):
            del sys.modules[module]


def _file_of(name: str, folders: Sequence[Path]) -> Path | None:
    """The file of a module in the first of these folders that has it."""
    for folder in folders:
        for file in (folder / f"{name}.py", folder / name / "__init__.py"):
            if file.is_file():
                return file.resolve()
    return None


@contextmanager
def _importable(folders: Sequence[Path]) -> Iterator[None]:
    """The context in which modules in these folders can be imported."""
    before = list(sys.path)
    sys.path[:0] = [str(folder) for folder in folders]
    # Files that were written since the last import are not in the caches of directories.
    importlib.invalidate_caches()
    try:
        yield
    finally:
        sys.path[:] = before
