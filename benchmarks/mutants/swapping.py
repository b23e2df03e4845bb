"""Puts mutated code into functions that are already imported, so that a fork need not import
anything anew."""

from __future__ import annotations

import gc
import inspect
from types import CodeType, FunctionType

Place = tuple[str, str, int]
"""File, qualified name and first line of a function."""
COMPREHENSIONS = ("<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>")


def place_of(code: CodeType) -> Place:
    """Where the source of this code is."""
    return code.co_filename, code.co_qualname, code.co_firstlineno


def live_functions(folder: str) -> dict[Place, list[FunctionType]]:
    """All functions of modules below a folder that exist in this process."""
    found: dict[Place, list[FunctionType]] = {}
    for function in gc.get_objects():
        if type(function) is FunctionType and function.__code__.co_filename.startswith(folder):
            found.setdefault(place_of(function.__code__), []).append(function)
    return found


def changed_functions(file: str, before: str, after: str) -> list[tuple[CodeType, CodeType]] | None:
    """Old and new code of the outermost functions that differ; None if code differs that runs at
    import."""
    try:
        return _differing(compile(before, file, "exec"), compile(after, file, "exec"))
    except SyntaxError:
        return None


def _differing(old: CodeType, new: CodeType) -> list[tuple[CodeType, CodeType]] | None:
    if _own(old) != _own(new):
        return None
    found: list[tuple[CodeType, CodeType]] = []
    for one, other in zip(_inner(old), _inner(new), strict=True):
        if one == other:
            continue
        if one.co_flags & inspect.CO_OPTIMIZED:
            if one.co_name in COMPREHENSIONS or one.co_freevars != other.co_freevars:
                return None
            found.append((one, other))
        elif (inside := _differing(one, other)) is None:  # the body of a class
            return None
        else:
            found.extend(inside)
    return found


def _own(code: CodeType) -> tuple[object, ...]:
    """What the code does itself, without the functions and classes in it."""
    constants = tuple(
        (type(c), c) if not isinstance(c, CodeType) else CodeType for c in code.co_consts
    )
    return code.co_code, code.co_names, code.co_varnames, constants


def _inner(code: CodeType) -> list[CodeType]:
    return [constant for constant in code.co_consts if isinstance(constant, CodeType)]
