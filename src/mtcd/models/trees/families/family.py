"""The interface of model families: what a party of an additive model needs in order to train.

A family is a frozen dataclass of settings, registered under the name that configs use. It makes a
``PartyModel`` from the party's data; that makes a ``TrainedPart`` at the end.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from mtcd.core.arrays import Array, is_sparse
from mtcd.core.errors import MtcdError
from mtcd.core.registry import Registry
from mtcd.data.vertical import Block
from mtcd.models.glm.fit import LabelFit
from mtcd.protocol.model import ClientModel, Theta

Arrays = Mapping[str, NDArray[Any]]


@dataclass(frozen=True, eq=False)
class Inputs:
    """What a client trains on: its block, and the loss with the labels."""

    number: int
    X: Block
    categorical: tuple[int, ...]
    """The columns of the block that hold the numbers of categories."""
    fit: LabelFit
    seed: int
    """The seed of the training; draws of the client also depend on ``number``."""

    @property
    def samples(self) -> int:
        """N, the number of training samples."""
        return len(self.fit.labels)

    @property
    def weights(self) -> Array | None:
        """The weights of samples, those of their classes included; None if all are 1."""
        return self.fit.loss.sample_weights

    @property
    def outputs(self) -> int:
        """Numbers per sample in a representation."""
        if self.fit.labels.ndim == 1:
            return 1
        return int(self.fit.labels.shape[1])


class TrainedPart(Protocol):
    """The trained model of one party."""

    def margins(self, X: Block) -> Array:
        """The representation h_k of new samples: one number each, or one for every class."""

    def arrays(self) -> Arrays:
        """The model as arrays by name, from which ``Family.part`` makes it again."""


class PartyModel(ClientModel, Protocol):
    """The model of one party on its data."""

    def margins(self, theta: Theta, X: Block) -> Array:
        """The representation of other samples, such as a test set. It is called at every
        measurement, as theta grows."""

    def finish(self, theta: Theta) -> TrainedPart:
        """The trained model of the party, from its final parameters."""


class NoSmoothness:
    """The members of ``ClientModel`` that only linear blocks support."""

    def nonsmooth_penalty(self, theta: Any) -> float:
        """0: no part of the penalty has kinks."""
        return 0.0

    @property
    def smoothness(self) -> float:
        """Raise: there is no bound on the curvature."""
        raise MtcdError(
            "This method needs the smoothness of a linear block, which this family does not have."
        )

    def most_steps(self, majorise: bool) -> int:
        """Raise: the steps are those of linear blocks."""
        raise MtcdError(
            "This method needs steps of linear blocks, which this family does not have."
        )

    def survey(self) -> Array:
        """Raise: the statistics describe linear blocks."""
        raise MtcdError(
            "This method needs a survey of linear blocks, which this family does not have."
        )


class Family(ABC):
    """The settings of a party's model: the base class of families.

    Subclasses are frozen dataclasses with keyword arguments, registered in ``FAMILIES``; each field
    is a setting that ``Mixed`` and configs accept.

    Examples
    --------
    >>> FAMILIES["linear"](l2=0.1)
    LinearFamily(l1=0.0, l2=0.1)
    """

    kind: ClassVar[str]
    """The name that it is registered under."""
    keeps_missing: ClassVar[bool] = False
    """Whether it takes missing values and categories as they are."""
    additive: ClassVar[bool] = False
    """Whether h_k(sum_i w_i theta_i) = sum_i w_i h_k(theta_i), so that a sync may average
    copies."""
    nonsmooth = False
    """Whether its penalty has a part that is not smooth."""

    @abstractmethod
    def client(self, inputs: Inputs) -> PartyModel:
        """The model of one party during a training.

        Parameters
        ----------
        inputs : Inputs
            The party's block, and the loss with the labels.

        Returns
        -------
        PartyModel
            The model; it may keep prepared columns, but no parameters.
        """

    @abstractmethod
    def part(self, arrays: Arrays) -> TrainedPart:
        """A trained model, read from a run folder.

        Parameters
        ----------
        arrays : mapping from str to arrays
            What ``TrainedPart.arrays`` gave.

        Returns
        -------
        TrainedPart
            The trained model.

        Raises
        ------
        ValueError, KeyError
            If the arrays do not describe a model of this family.
        """


FAMILIES: Registry[type[Family]] = Registry(
    Family,
    "mtcd.families",
    "mtcd.models.trees.families",
    "model.parties: no family is called '{}';",
)


@dataclass(frozen=True, eq=False)
class Scale:
    """Means and deviations of the columns; 1 for the deviation of a constant column.

    Samples count by their weights, so that a sample of weight 2 is two samples here too.
    """

    means: Array
    scales: Array

    @staticmethod
    def of(X: Block, weights: Array | None = None) -> Scale:
        """The means and deviations of the training samples."""
        # Scaled columns have no zeros left, so they are dense from here on.
        dense = np.asarray(X.todense()) if is_sparse(X) else X
        means = np.average(dense, axis=0, weights=weights)
        scales = np.sqrt(np.average((dense - means) ** 2, axis=0, weights=weights))
        # rounding of the mean leaves a constant column a deviation just above 0
        return Scale(means, np.where(scales > 1e-12, scales, 1.0))

    def apply(self, X: Block) -> Array:
        """The columns less their means, divided by their deviations."""
        dense = np.asarray(X.todense()) if is_sparse(X) else X
        return np.asfortranarray((dense - self.means) / self.scales)

    def arrays(self) -> Arrays:
        """The means and deviations by name, to be stored."""
        return {"means": self.means, "scales": self.scales}

    @staticmethod
    def from_arrays(arrays: Arrays) -> Scale:
        """The scaling that ``arrays`` described."""
        means = np.asarray(arrays["means"], dtype=float)
        scales = np.asarray(arrays["scales"], dtype=float)
        return Scale(means, scales)
