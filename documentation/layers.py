"""The order of imports, from the contract that ``make lint`` checks."""

from __future__ import annotations

import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]


def layer_list() -> str:
    """The layers from above to below, as the import contract has them."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]
    layers = settings["contracts"][0]["layers"]
    return "\n".join(["```text", *(layer.replace("mtcd.", "") for layer in layers), "```"])
