"""The cross-entropy of a split network on randomised labels."""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor
from torch.nn import functional

from mtcd.core.errors import ConfigError
from mtcd.privacy.labels.mechanisms import probabilities


@dataclass(frozen=True)
class CorrectedCrossEntropy:
    """The mean cross-entropy, which in expectation over the draws is that of the true labels.

    Parameters
    ----------
    epsilon : float
        That of the randomised response.
    """

    epsilon: float

    has_classes = True
    """Labels are classes, whatever their type."""

    def __call__(self, outputs: Tensor, labels: Tensor) -> Tensor:
        """The loss of outputs, one for each class, for numbers of classes."""
        classes = outputs.shape[1]
        if classes < 2:
            raise ConfigError(
                "privacy.labels: the fusion module must give an output for every class."
            )
        p, q = probabilities(self.epsilon, classes)
        indicators = functional.one_hot(labels, classes).to(outputs.dtype)
        return functional.cross_entropy(outputs, (indicators - q) / (p - q))
