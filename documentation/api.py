"""The reference of the Python interface: signatures and docstrings of the public names, and of
their methods."""

from __future__ import annotations

import inspect
import itertools
import re
from collections.abc import Iterator
from functools import partial
from typing import Any

import mtcd
from documentation.keys import texts_below
from documentation.tables import table
from mtcd.core import features
from mtcd.models.trained import Trained


def api_reference(*names: str) -> str:
    """The public names given, each with its signature, its docstring and its own methods."""
    lines: list[str] = []
    for name in names:
        lines += [f"### mtcd.{name}", "", *_described(name, getattr(mtcd, name)), ""]
    return "\n".join(lines)


def _described(name: str, value: Any) -> list[str]:
    lines = [f"`{name}{signature(value)}`", "", *docstring(value)]
    members = (
        [(key, one) for key, one in vars(value).items() if _is_shown(key, one)]
        if inspect.isclass(value)
        else []
    )
    rows = [[_called(key, one), _first(_function(one))] for key, one in members]
    if value is mtcd.Run:
        rows += _found_by_name()
    return [*lines, "", *table(["member", "meaning"], rows)] if rows else lines


def _found_by_name() -> Iterator[list[str]]:
    """What ``run.NAME`` finds beside the members of ``Run``: functions of features, and parts of
    models."""
    for name, home in sorted(features.parts("mtcd.run").items()):
        if not name.startswith("_"):
            function: Any = features.load(home)
            yield [f"`{name}{signature(partial(function, None))}`", _first(function)]

    for home in features.parts("mtcd.trained").values():
        features.load(home)
    for kind in sorted(Trained.__subclasses__(), key=lambda one: one.what):
        for name, text in texts_below(kind).items():
            if name in kind.offers:
                yield [f"`{name}`", f"{text} ({kind.what})"]

        for name, member in vars(kind).items():
            if name in kind.offers and _is_shown(name, member):
                yield [_called(name, member), f"{_first(_function(member))} ({kind.what})"]


def signature(value: Any) -> str:
    """The parameters with their defaults, without types, which the docstrings tell in words."""
    try:
        parameters = list(inspect.signature(value).parameters.values())
    except ValueError:
        return ""
    bare = [
        one.replace(annotation=one.empty) for one in parameters if one.name not in ("self", "cls")
    ]
    text = str(inspect.Signature(bare))
    return re.sub(r"<factory>|<function .*?>|<object object at \w+>", "...", text)


def docstring(value: Any) -> list[str]:
    """Its lines as Markdown: names in double ticks get single ones, examples a block of their
    own."""
    text = re.sub(r":\w+:`~?([^`]+)`", r"`\1`", (inspect.getdoc(value) or "").replace("``", "`"))
    lines: list[str] = []
    for paragraph in text.split("\n\n"):
        lines += ["", *_paragraph(paragraph)]
    return lines[1:]


def _paragraph(text: str) -> list[str]:
    """A paragraph, an example, or a section of parameters, as NumPy's style has them."""
    section = re.match(r"([A-Z]\w+)\n-+\n", text)
    body = text[section.end() :] if section else text
    title = [f"**{section[1]}**", ""] if section else []
    if body.startswith(">>>"):
        return [*title, "```pycon", body, "```"]
    return [*title, *(_entries(body) if section else _no_emphasis(body).splitlines())]


def _entries(text: str) -> list[str]:
    """The entries of a section: a name with its type, and indented lines about it."""
    rows = []
    for entry in re.split(r"\n(?=\S)", text):
        head, *about = entry.splitlines()
        name, _, kind = head.partition(" : ")
        meaning = " ".join(line.strip() for line in about)
        rows.append(f"- `{name}`{f' ({kind})' if kind else ''}: {meaning}")
    return _no_emphasis("\n".join(rows)).splitlines()


def _no_emphasis(text: str) -> str:
    """The star of f* as a star."""
    return re.sub(r"(`[^`]*`)|\*", lambda found: found[1] or "\\*", text)


def _first(value: Any) -> str:
    return " ".join(itertools.takewhile(str.strip, docstring(value)))


def _function(member: Any) -> Any:
    return member.fget if isinstance(member, property) else getattr(member, "__func__", member)


def _is_shown(name: str, member: Any) -> bool:
    function = _function(member)
    return not name.startswith("_") and inspect.isfunction(function) and bool(function.__doc__)


def _called(name: str, member: Any) -> str:
    return (
        f"`{name}`" if isinstance(member, property) else f"`{name}{signature(_function(member))}`"
    )
