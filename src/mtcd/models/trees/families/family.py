"""The interface of model families."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

from numpy.typing import NDArray

from mtcd.core.arrays import Array
from mtcd.core.errors import MtcdError
from mtcd.core.registry import Registry
from mtcd.data.vertical import Block
from mtcd.models.glm.fit import LabelFit
from mtcd.protocol.model import ClientModel, Theta

Arrays = Mapping[str, NDArray[Any]]


@dataclass(frozen=True, eq=False)
class Inputs:
    """What client ``number`` trains on: its block, and the loss with the labels."""

    number: int
    X: Block
    categorical: tuple[int, ...]
    """The columns of the block that hold the numbers of categories."""
    fit: LabelFit
    seed: int

    @property
    def samples(self) -> int:
        """N."""
        return len(self.fit.labels)

    @property
    def weights(self) -> Array | None:
        """The weights of samples, those of their classes included; None if all are 1."""
        return self.fit.loss.sample_weights

    @property
    def outputs(self) -> int:
        """Numbers per sample in a representation."""
        return 1 if self.fit.labels.ndim == 1 else self.fit.labels.shape[1]


class Part(Protocol):
    """The trained model of one party."""

    def margins(self, X: Block) -> Array:
        """The representation of new samples."""

    def arrays(self) -> Arrays:
        """The model as arrays by name, from which ``Family.part`` makes it again."""


class PartyModel(ClientModel, Protocol):
    """The model of one party on its data."""

    def margins(self, theta: Theta, X: Block) -> Array:
        """The representation of other samples, such as a test set. It is asked for again and again
        as theta grows."""

    def finish(self, theta: Theta) -> Part:
        """The trained model."""


class NoSmoothness:
    """The members of a party's model that only linear blocks have a use for."""

    def nonsmooth_penalty(self, theta: Any) -> float:
        """0."""
        return 0.0

    @property
    def smoothness(self) -> float:
        """Raise: there is no bound on the curvature."""
        raise MtcdError(
            "This method needs the smoothness of a linear block, which this family does not have."
        )

    def survey(self) -> Array:
        """Raise, likewise."""
        raise MtcdError(
            "This method needs a survey of linear blocks, which this family does not have."
        )


class Family(ABC):
    """The settings of a party's model: a frozen dataclass."""

    kind: ClassVar[str]
    keeps_missing: ClassVar[bool] = False
    """Whether it takes missing values and categories as they are."""
    additive: ClassVar[bool] = False
    """Whether a weighted sum of copies represents the weighted sum of what they represent."""
    nonsmooth = False
    """Whether its penalty has a part that is not smooth."""

    @abstractmethod
    def client(self, inputs: Inputs) -> PartyModel:
        """The model of a party that trains on these inputs."""

    @abstractmethod
    def part(self, arrays: Arrays) -> Part:
        """A trained model from its arrays. Raises ValueError or KeyError."""


FAMILIES: Registry[type[Family]] = Registry(
    Family,
    "mtcd.families",
    "mtcd.models.trees.families",
    "model.parties: no family is called '{}';",
)
