"""Data with the labels that everybody may see, in one process."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from mtcd.core.errors import ConfigError
from mtcd.data.dataset import VerticalDataset
from mtcd.data.vertical import VerticalData
from mtcd.privacy.settings import LabelPrivacy, Labels, LabelSource


def released(data: Any, privacy: LabelPrivacy | None, folder: str | Path | None = None) -> Any:
    """The data with the labels of all samples released, those of the test set among them, and with
    notes on them.

    Parameters
    ----------
    data
        The data with its labels.
    privacy
        What changes the labels; None if nothing does.
    folder
        The folder of checkpoints: what is to be kept is kept there, if the labels are of no file.

    Returns
    -------
    VerticalData or VerticalDataset
        Columns that are prepared are prepared anew, as some preparations look at labels.
    """
    if privacy is None:
        return data

    table, kept_in = None, None
    if isinstance(data, VerticalData):
        table = data.label_table
    if folder is not None:
        kept_in = Path(folder)
    source = LabelSource(table, kept_in)

    # in one draw for training and test samples: each label is released once
    test: Any = data.test
    labels = data.labels
    if test is not None:
        labels = np.concatenate([labels, test.labels])
    drawn = privacy.released(labels, source)

    training = with_labels(data, drawn[: data.samples])
    if test is not None:
        training = replace(training, test=_held_out(test, drawn[data.samples :], training))
    return replace(training, notes=(*training.notes, *privacy.notes(source)))


def with_labels(data: Any, labels: Labels) -> Any:
    """The training samples with other labels, beside their own, without the test set."""
    if isinstance(data, VerticalDataset):
        if data.table is not None:
            raise ConfigError(
                "privacy.labels: this data set was made of a table. Give the table itself, "
                "VerticalData."
            )
        return replace(data, labels=labels, true_labels=data.labels, test=None)

    changed = replace(data, labels=labels, true_labels=data.labels, test=None)
    if data.raw is None:
        return changed
    return changed.take(np.arange(data.samples))  # prepared anew, by the labels that may be seen


def _held_out(test: Any, labels: Labels, training: Any) -> Any:
    """The test samples with other labels, prepared as the training samples are."""
    changed = replace(test, labels=labels, true_labels=test.labels)
    # nothing was prepared that could depend on labels
    if isinstance(changed, VerticalDataset) or changed.raw is None:
        return changed
    # As the training samples are: a step that was fitted on them stays as it was.
    return changed.take(np.arange(changed.samples), like=training)
