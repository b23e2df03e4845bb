"""Which results a command may replace: those of the same config, or all with ``--force``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from mtcd.config.build import resolved_yaml, settled
from mtcd.config.runs import CONFIG
from mtcd.config.schema import Config
from mtcd.core.errors import ConfigError, listing
from mtcd.core.files import MARKER

SHOWN = 3  # keys that differ, in an error
ABSENT = object()
"""In place of a key that a config does not have: not equal to any value, None included."""


def check_same_run(folder: Path, config: Config, force: bool) -> None:
    """Refuse to replace a run of another config.

    Args:
        folder: where the new run is to be written; it may not exist yet.
        config: the config of the new run.
        force: whether the user asked to replace whatever run is there.

    Raises:
        ConfigError: if the folder holds a run of another config, or one that was saved without its
        config.
    """
    if (folder / MARKER).is_file():
        check_same_config(folder, config, force, "a run")


def check_same_config(folder: Path, config: Config, force: bool, what: str) -> None:
    """The same for any folder of results that keeps the config it was made with as config.yaml.

    ``what`` names the results in the error: 'a run', 'a path'.
    """
    if force:
        return

    difference = _difference(folder / CONFIG, config)
    if difference:
        raise ConfigError(
            f"{folder} holds {what} of another config ({difference}): choose another folder, or "
            "replace it with --force."
        )


def _difference(kept: Path, config: Config) -> str:
    """How a kept config.yaml differs from this config; empty if it does not.

    Both are compared as plain values. The kept config may be from somebody else: nothing that it
    names is imported.
    """
    try:
        # safe: no tag of a stranger's file makes an object
        before = yaml.safe_load(kept.read_text(encoding="utf-8"))
    except (OSError, ValueError, yaml.YAMLError):
        before = None
    if not isinstance(before, dict):
        return f"it has no {CONFIG} that can be read"

    # with defaults filled in, as the kept one has them: a key that is left out is no difference
    now = yaml.safe_load(resolved_yaml(settled(config)))
    old, new = _flat(before), _flat(now)

    differ = [key for key, value in new.items() if old.get(key, ABSENT) != value]
    differ += [key for key in old if key not in new]
    if not differ:
        return ""
    return f"it differs in {listing(differ, SHOWN)}"


def _flat(content: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """Nested keys as 'method.hops'."""
    found: dict[str, Any] = {}
    for key, value in content.items():
        if isinstance(value, dict) and value:
            found |= _flat(value, f"{prefix}{key}.")
        else:
            # an empty section too, which would differ from a missing one in nothing otherwise
            found[f"{prefix}{key}"] = value
    return found
