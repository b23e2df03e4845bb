"""The setting ``labels``, read: with a guarantee, or soft."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from mtcd.core.errors import ConfigError, did_you_mean
from mtcd.privacy.labels.settings import LabelDP
from mtcd.privacy.labels.soft import SoftLabels


def read_label_privacy(given: Any) -> LabelDP | SoftLabels:
    """The setting from a mapping, as configs have it; one that was read as it is."""
    if isinstance(given, LabelDP | SoftLabels):
        return given
    if not isinstance(given, dict):
        raise ConfigError(f"privacy.labels must be {{epsilon: 2}} or the like, but is {given!r}.")
    if "epsilon" in given and "soft" in given:
        raise ConfigError(
            "privacy.labels: epsilon has a guarantee and soft has none: give one of them."
        )

    kind = SoftLabels if "soft" in given else LabelDP
    known = [one.name for one in fields(kind) if one.init]
    for name in given:
        if name not in known:
            raise ConfigError(
                f"privacy.labels: no setting is called {name!r}: {did_you_mean(str(name), known)}"
            )
    if kind is LabelDP and "epsilon" not in given:
        raise ConfigError("privacy.labels: give the epsilon of each label: {epsilon: 2}.")
    return kind(**given)
