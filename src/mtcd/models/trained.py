"""What a run holds, whatever its model is: something that predicts, is written into a folder, and
read again."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from math import prod
from pathlib import Path
from typing import Any, ClassVar, Self, cast

from numpy.typing import NDArray

from mtcd.core import features
from mtcd.core.arrays import Array
from mtcd.core.errors import MtcdError, NoSuchPartError
from mtcd.data.prepare import Preparations
from mtcd.models.metrics import Outputs
from mtcd.models.predicted import Columns


class Trained(ABC):
    """A trained model of one kind. Subclasses are frozen dataclasses with a field ``preparations``.

    A kind of model says in its ``feature.py`` which function reads it: under ``mtcd.trained``, by
    ``entry``.
    """

    entry: ClassVar[str]
    """The key in run.json under which ``write`` describes it."""
    checkpoint: ClassVar[str]
    """The file in which its training keeps its state, which stays in the folder of the run."""
    what: ClassVar[str]
    """The kind in words, as in 'this run trained a linear model'."""
    instead: ClassVar[str]
    """Where to look, for somebody who asked for a part that only other kinds have."""
    offers: ClassVar[frozenset[str]] = frozenset()
    """The parts that a run shows beside predictions: names of attributes, such as
    ``coefficients``."""
    takes_sparse: ClassVar[bool] = False
    """Whether new samples may be a sparse matrix, as read from an svmlight file."""

    preparations: Preparations | None

    @property
    @abstractmethod
    def known_classes(self) -> tuple[str | float, ...]:
        """The classes, in the order of probabilities; empty for values."""

    @property
    def families(self) -> tuple[str, ...] | None:
        """The family of each client's part, of a kind whose clients may have different ones."""
        return None

    @abstractmethod
    def predict(self, X: Any) -> NDArray[Any]:
        """Values in regression, the labels of the classes otherwise."""

    @abstractmethod
    def decision(self, X: Any) -> NDArray[Any]:
        """The outputs of the model for new samples."""

    @abstractmethod
    def predict_proba(self, X: Any) -> Array:
        """The probabilities of the classes, a column each; an error if the model has none."""

    @abstractmethod
    def columns_of(self, X: Any) -> Columns:
        """Predictions with probabilities or scores, by the names of their columns."""

    @abstractmethod
    def outputs(self, X: Any, y: Any) -> Outputs:
        """The outputs for samples with known labels, for metrics."""

    @abstractmethod
    def write(self, folder: Path) -> dict[str, Any]:
        """Write the model into a folder; returns what run.json says of it."""

    @abstractmethod
    def onnx(self, path: Path) -> dict[Path, bytes]:
        """The model as files for ONNX runtimes, by path; an error if it cannot be exported."""

    def prepared_by(self, preparations: Preparations) -> Self:
        """The model with the preparations of its columns. Raises ValueError if they are of another
        model."""
        return cast(Self, replace(cast(Any, self), preparations=preparations))

    def part(self, name: str) -> Any:
        """A part of the model that not every kind has; an error that says what there is instead."""
        if name not in self.offers:
            raise self.missing(name)
        return getattr(self, name)

    def missing(self, name: str) -> NoSuchPartError:
        """The error of somebody who asked for a part that this kind does not have."""
        words = name.replace("_", " ")
        return NoSuchPartError(
            f"This run trained {self.what}, without {words}: look at {self.instead}."
        )


def read_trained(folder: Path, about: dict[str, Any], model: Any) -> Trained | None:
    """The model that run.json describes, by the kind that wrote it; None of a run without a model.

    ``model`` brings the code of kinds that write weights only. Raises ValueError, KeyError,
    TypeError or OSError if the folder is damaged.
    """
    known = features.parts("mtcd.trained")
    # By the entry that is there, and not by a key that names the kind: a folder that was written by
    # a version with fewer kinds stays readable.
    for entry, home in known.items():
        if entry in about:
            read = cast(Any, features.load(home))
            return cast(Trained, read(folder, about[entry], model))

    # A run that diverged has written no model, and is no error.
    if about["status"] != "diverged":
        raise MtcdError(
            f"{folder} holds a model of a kind that this installation of mtcd does not have."
        )
    return None


@dataclass(frozen=True)
class Outline:
    """What the folder of a run tells of its model without reading it, for which networks may need
    code.

    Parameters
    ----------
    clients : tuple of str
        The clients in order; none where the run has no model.
    features : tuple of int, optional
        The number of features of each client.
    families : tuple of str, optional
        See ``Trained.families``.
    """

    clients: tuple[str, ...] = ()
    features: tuple[int, ...] | None = None
    families: tuple[str, ...] | None = None


def outline(about: Mapping[str, Any]) -> Outline:
    """The outline of the model that run.json describes.

    A kind whose clients may have different families says under ``mtcd.families``, by its entry,
    which function reads them from the description.
    """
    for entry in features.parts("mtcd.trained"):
        if entry in about:
            described = about[entry]
            clients = tuple(described.get("clients", ()))
            return Outline(clients, _features(described), _families(entry, described))

    return Outline()


def _features(described: Mapping[str, Any]) -> tuple[int, ...] | None:
    # A picture has a shape and no names of columns.
    """The numbers in a sample of a split network; the columns of other models."""
    if "shapes" in described:
        return tuple(prod(shape) for shape in described["shapes"])
    if "columns" in described:
        return tuple(len(names) for names in described["columns"])
    return None


def _families(entry: str, described: Mapping[str, Any]) -> tuple[str, ...] | None:
    home = features.parts("mtcd.families").get(entry)
    if home is None:
        return None

    read = cast(Callable[[Mapping[str, Any]], tuple[str, ...]], features.load(home))
    return read(described)
