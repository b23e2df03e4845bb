"""What all estimators share: settings of the method as parameters, the split of the columns, and
the training."""

from __future__ import annotations

import dataclasses
from abc import abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.utils import check_random_state
from sklearn.utils.validation import _check_sample_weight

from mtcd.core.arrays import Array
from mtcd.core.errors import MtcdError, listing
from mtcd.data.frames import as_frame
from mtcd.data.splitting import split
from mtcd.data.vertical import VerticalData
from mtcd.methods.method import Method
from mtcd.training.run import Run
from mtcd.training.stop import Stop
from mtcd.training.train import train

DEFAULT_CLIENTS = 4
NESTED = "method__"


class SplitEstimator(BaseEstimator):  # type: ignore[misc]
    """A model of vertically split columns."""

    losses: tuple[str, ...]
    """The losses of this kind of estimator; the first is the default."""
    blocks: int | Mapping[str, Any] | None
    network: Any
    method: Method | None
    loss: str | None
    random_state: Any

    @abstractmethod
    def _default_method(self) -> Method:
        """The method for this kind of model, on a network that is connected."""

    def _method(self) -> Method:
        """The method that was given, or the default."""
        if self.method is None:
            return self._default_method()
        return self.method

    @abstractmethod
    def _decision(self, X: Any) -> Array:
        """The scores of samples: one number each, or one per class."""

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The parameters; with ``deep``, also the settings of the method, as
        ``method__local_updates``."""
        params: dict[str, Any] = super().get_params(deep=False)
        if deep and dataclasses.is_dataclass(self.method):
            settings = [field.name for field in dataclasses.fields(self.method) if field.init]
            params |= {NESTED + name: getattr(self.method, name) for name in settings}
        return params

    def set_params(self, **params: Any) -> Self:
        """Set parameters; ``method__local_updates=5`` changes one setting of the method."""
        own, nested = {}, {}
        for name, value in params.items():
            if name.startswith(NESTED):
                nested[name.removeprefix(NESTED)] = value
            else:
                own[name] = value

        super().set_params(**own)
        if nested:
            method = self._method()
            known = {field.name for field in dataclasses.fields(method) if field.init}  # type: ignore[arg-type]
            unknown = sorted(set(nested) - known)
            if unknown:
                raise ValueError(
                    f"Invalid parameter {NESTED + unknown[0]!r}: the method has {sorted(known)}."
                )
            self.method = dataclasses.replace(method, **nested)  # type: ignore[type-var]
        return self

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        # scikit-learn tries sparse matrices on estimators that say so
        tags.input_tags.sparse = True
        return tags

    def _loss(self) -> str:
        if self.loss is None:
            return self.losses[0]
        if self.loss not in self.losses:
            raise ValueError(
                f"loss must be one of {', '.join(map(repr, self.losses))}, but is {self.loss!r}."
            )
        return self.loss

    def _split(
        self, X: Any, labels: NDArray[Any], weights: Array | None, prepare: Any = None
    ) -> VerticalData:
        clients: Any = self.blocks
        if clients is None:
            # each needs a column
            clients = min(DEFAULT_CLIENTS, X.shape[1])

        columns = getattr(self, "feature_names_in_", None)
        return split(X, labels, clients=clients, columns=columns, prepare=prepare, weights=weights)

    def _train(self, data: VerticalData, model: object, stop: Stop) -> Run:
        # a number is the seed itself, so that mtcd.train with it gives the same run; None and a
        # RandomState draw one, another in every fit
        seed = self.random_state
        if not isinstance(seed, int | np.integer):
            seed = check_random_state(seed).randint(2**31 - 1)
        run = train(data, model, self.network, self.method, stop, seed=int(seed), metrics=())
        run.trained()  # raises if it diverged
        return run


@contextmanager
def value_errors() -> Iterator[None]:
    """Settings and data are checked by the library, scikit-learn wants ValueErrors."""
    try:
        yield
    except MtcdError as error:
        raise ValueError(str(error)) from error


def checked_weights(sample_weight: Any, X: Any) -> Array | None:
    """The weights of samples as an array; None if there are none."""
    if sample_weight is None:
        return None
    return np.asarray(
        _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
    )


def refuse_categories(X: Any) -> None:
    """Refuse columns of categories, whose numbers scikit-learn would take as they are."""
    names = frame_categories(X)
    if names:
        raise ValueError(
            f"Columns of categories are no numbers: {listing(names)}. Encode them first, for "
            "example with OneHotEncoder, or train with mtcd.split(..., prepare='auto')."
        )


def frame_categories(X: Any) -> list[str]:
    """The columns of a data frame that are of categories; none of anything else."""
    if not hasattr(X, "columns"):
        return []
    with value_errors():
        frame = as_frame(X)
    if frame is None:
        return []
    return frame.categories()
