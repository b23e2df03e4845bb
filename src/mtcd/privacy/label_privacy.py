"""Labels that change before anything leaves their holder: the setting ``labels`` of
:class:`mtcd.Privacy`, which a feature brings."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, cast

import numpy as np
from numpy.typing import NDArray

from mtcd.core import features
from mtcd.core.errors import ConfigError
from mtcd.models.label_noise import LabelNoise

GROUP = "mtcd.label_privacy"
Labels = NDArray[np.generic]


@dataclass(frozen=True)
class LabelSource:
    """Where labels are from.

    Parameters
    ----------
    table : Path, optional
        The file that holds them; None if they are of no file.
    instead : Path, optional
        A folder for what is kept beside the table, if there is none, or if its folder cannot be
        written.
    holder : str, default ""
        The party of a federation that holds them; empty in one process.
    """

    table: Path | None = None
    instead: Path | None = None
    holder: str = ""


class LabelPrivacy(LabelNoise, Protocol):
    """What changes the labels of a table, once, and corrects the loss for it."""

    def within(self, privacy: Any) -> LabelPrivacy:
        """The same for a training with the other settings of :class:`mtcd.Privacy`; those that do
        not go with it are refused."""

    def released(self, labels: Labels, source: LabelSource) -> Labels:
        """The labels that everybody but their holder sees, the same whenever they are asked for."""

    def notes(self, source: LabelSource) -> tuple[str, ...]:
        """Notes for the user."""


def label_privacy(given: object) -> LabelPrivacy:
    """The settings as an object of the feature.

    Parameters
    ----------
    given
        A mapping, as in a config, or such an object.

    Raises
    ------
    ConfigError
        If the feature is not installed, or does not know a setting.
    """
    home = features.parts(GROUP).get("labels")
    if home is None:
        raise ConfigError("privacy.labels: this installation of mtcd has none: leave it out.")

    make = cast(Callable[[object], LabelPrivacy], features.load(home))
    if isinstance(given, Mapping):
        given = dict(given)
    return make(given)
