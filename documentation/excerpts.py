"""Pieces of source code for pages, found by name or by their first and last words, never by line
number."""

from __future__ import annotations

import ast
from pathlib import Path

ROOT = Path(__file__).parents[1]


def excerpt(path: str, name: str) -> str:
    """The function, method (``Class.method``) or class of that name in the file, as it is there,
    with its address."""
    source = (ROOT / path).read_text(encoding="utf-8")
    node: ast.AST = ast.parse(source)
    for part in name.split("."):
        node = next(one for one in ast.iter_child_nodes(node) if getattr(one, "name", None) == part)
    assert isinstance(node, ast.stmt)
    lines = source.splitlines()[node.lineno - 1 : node.end_lineno]
    indent = len(lines[0]) - len(lines[0].lstrip())
    code = "\n".join(line[indent:] for line in lines)
    return f"`{name}` in [{path}](../{path}):\n\n```python\n{code}\n```\n"
