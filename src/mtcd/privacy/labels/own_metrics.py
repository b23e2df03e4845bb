"""Metrics on the true labels, which stay with their holder: a file of its own beside a run."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

from mtcd.models.label_noise import counted
from mtcd.models.metrics import all_metrics

if TYPE_CHECKING:
    from mtcd.training.run import Run

MODE = 0o600
"""Of the file: metrics on true labels are not covered by what was promised for the labels."""


@dataclass(frozen=True)
class OwnMetrics:
    """The metrics of a run on the labels of the table, where it was trained on released ones.

    For the label holder alone: unlike all else in a run, these numbers depend on true labels.

    Parameters
    ----------
    values : mapping from str to float
        Those that are defined, as ``train_auc``, and with a test set ``test_auc``.

    Examples
    --------
    >>> OwnMetrics({"test_auc": 0.75})["test_auc"]
    0.75
    """

    values: Mapping[str, float]

    file: ClassVar[str] = "own_metrics.json"

    def __getitem__(self, name: str) -> float:
        return self.values[name]

    def write(self, path: Path) -> None:
        """Write them for the owner of the file alone."""
        content = json.dumps(dict(self.values), indent=1) + "\n"
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, MODE)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(content)

    @classmethod
    def read(cls, path: Path) -> Self:
        """Read the file again."""
        found = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(found, dict):
            raise ValueError(f"{path.name} holds no metrics")
        return cls({name: float(value) for name, value in found.items()})


def own_metrics(run: Run, data: Any) -> OwnMetrics | None:
    """The metrics of a run on the true labels of its data.

    Parameters
    ----------
    run : Run
        The run, which has ended.
    data : VerticalData or VerticalDataset
        What it was trained on, with its test set if there is one.

    Returns
    -------
    OwnMetrics or None
        None where labels are as they were, and of a run without a model.
    """
    if getattr(data, "true_labels", None) is None or run.model is None:
        return None

    found = _measured(run, data, "train")
    if data.test is not None:
        found |= _measured(run, data.test, "test")
    return OwnMetrics(found)


def _measured(run: Run, samples: Any, part: str) -> dict[str, float]:
    classes = run.classes
    outputs = run.outputs(samples, counted(samples.true_labels, classes))
    return all_metrics(len(classes), outputs.has_probabilities).measured(part, outputs)
