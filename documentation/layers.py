"""The layers of the core and the features above it, as pyproject.toml declares them."""

from __future__ import annotations

import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]


def layer_list() -> str:
    """The features side by side, then the layers of the core from above to below."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"][
        "architecture"
    ]
    features = " | ".join(settings["features"]).replace("mtcd.", "")
    layers = [layer.replace("mtcd.", "") for layer in settings["layers"]]
    return "\n".join(["```text", features, "---", *layers, "```"])
