"""The stub of the package: the public names for type checkers, from the lists that the package
itself reads."""

from __future__ import annotations

from pathlib import Path

import mtcd

STUB = Path(__file__).parents[1] / "src" / "mtcd" / "__init__.pyi"


def stub() -> str:
    """The text of ``src/mtcd/__init__.pyi``."""
    lines = [
        "# Written by `python -m documentation` from the public names of the core and of every "
        "feature.",
        "",
    ]
    by_module: dict[str, list[str]] = {}
    for name, module in mtcd._homes().items():
        by_module.setdefault(module, []).append(name)

    for module in sorted(by_module):
        for name in sorted(by_module[module]):
            lines.append(f"from {module} import {name} as {name}")

    return "\n".join([*lines, "", "__version__: str", "__all__: list[str]", ""])
