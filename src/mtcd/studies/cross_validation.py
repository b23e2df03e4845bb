"""K-fold cross-validation of any model: every sample is held out once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import networkx as nx
import numpy as np
from numpy.typing import ArrayLike, NDArray

from mtcd.core.arrays import Rows as Numbers
from mtcd.core.checks import check_whole
from mtcd.core.errors import ConfigError, DataError
from mtcd.core.rows import Rows
from mtcd.core.seeding import stream
from mtcd.data.dataset import VerticalDataset
from mtcd.data.vertical import VerticalData
from mtcd.methods.method import Method
from mtcd.network.topology import Network
from mtcd.protocol.ledger.costs import Costs
from mtcd.studies.outcomes import AnyData, Outcomes, check_trained, final_metrics
from mtcd.training.compute import Compute
from mtcd.training.kinds import default_model, kind_of
from mtcd.training.observer import Watch
from mtcd.training.run import Run
from mtcd.training.stop import Stop
from mtcd.training.train import train


@dataclass(frozen=True, eq=False)
class CrossValidation(Outcomes):
    """The result of :func:`cross_validate`.

    ``mean`` and ``sd`` are over the folds, by metric.

    Parameters
    ----------
    runs : tuple of Run
        A run for every fold.
    metrics : tuple of mappings
        The metrics of each run ('train_auc', 'test_auc').
    fold : array
        In which fold each sample was held out.

    Examples
    --------
    >>> import mtcd
    >>> data = mtcd.synthetic("logistic", samples=90, features=8, clients=4)
    >>> found = mtcd.cross_validate(data, mtcd.Glm("logistic", l2=1.0), folds=3)
    >>> len(found.runs), sorted(set(found.fold.tolist()))
    (3, [0, 1, 2])
    >>> 0.5 < found.mean["test_auc"] <= 1.0
    True
    """

    runs: tuple[Run, ...]
    metrics: tuple[dict[str, float], ...]
    fold: Numbers

    def __repr__(self) -> str:
        mean, sd = self.mean, self.sd
        tested = [name for name in mean if name.startswith("test_")]
        shown = [f"{name} {mean[name]:.4g} ± {sd[name]:.2g}" for name in tested]
        return f"CrossValidation({len(self.runs)} folds: {', '.join(shown)})"

    @property
    def mean(self) -> dict[str, float]:
        """The mean of each metric over the folds."""
        means = {}
        for name in self.metrics[0]:
            means[name] = float(np.mean([one[name] for one in self.metrics]))

        return means

    @property
    def sd(self) -> dict[str, float]:
        """The standard deviation of each metric over the folds (with K - 1 in the denominator)."""
        deviations = {}
        for name in self.metrics[0]:
            values = [one[name] for one in self.metrics]
            # of a sample of possible folds, not of all
            deviations[name] = float(np.std(values, ddof=1))

        return deviations

    def rows(self) -> Rows:
        rows = Rows()
        for number, (run, metrics) in enumerate(zip(self.runs, self.metrics, strict=True)):
            held_out = int((self.fold == number).sum())
            about = {
                "fold": number,
                "train_samples": len(self.fold) - held_out,
                "test_samples": held_out,
            }
            last = run.final
            rows.append(
                {
                    **about,
                    "status": run.status,
                    "iterations": last.iteration,
                    "cost": last.cost,
                    **metrics,
                }
            )
        return rows


def cross_validate(
    data: AnyData,
    model: object | Callable[[AnyData], object] | None = None,
    network: Network | nx.Graph | Iterable[tuple[str | int, str | int]] | str = "complete",
    method: Method | None = None,
    folds: int | ArrayLike = 5,
    stop: Stop | None = None,
    costs: Costs | None = None,
    seed: int = 0,
    standardise: bool = False,
    compute: Compute | None = None,
    metrics: Sequence[str] | None = None,
    watch: Watch | None = None,
) -> CrossValidation:
    """Train once for every fold on the other folds, and test on it.

    The rows are drawn once for all clients, from the seed; of classes, each fold has about the same
    share. Preparation and scaling are fitted on the training rows of each fold. A test set of the
    data takes no part.

    Parameters
    ----------
    data : VerticalData or VerticalDataset
        As in :func:`train`.
    model : Glm, Trees, Mixed, SplitModel or callable, optional
        As in :func:`train`, or a function that makes the model from the data of a fold.
    network : str, Network or links, default 'complete'
        As in :func:`train`.
    method : Method, optional
        As in :func:`train`.
    folds : int or array, default 5
        Their number, or a fold for each sample.
    stop : Stop, optional
        As in :func:`train`.
    costs : Costs, optional
        As in :func:`train`.
    seed : int, default 0
        As in :func:`train`; it also determines the folds.
    standardise : bool, default False
        As in :func:`train`.
    compute : Compute, optional
        As in :func:`train`.
    metrics : sequence of str, optional
        As in :func:`train`.
    watch : callable, optional
        As in :func:`train`.

    Returns
    -------
    CrossValidation
        A run for every fold, and its metrics.

    Examples
    --------
    >>> import mtcd
    >>> data = mtcd.synthetic("ridge", samples=60, features=6, clients=3)
    >>> found = cross_validate(data, mtcd.Glm("ridge"), method=mtcd.TreeCG(), folds=3, stop=mtcd.Stop(gap=1e-6))
    >>> len(found.runs), round(found.mean["test_r2"], 2)
    (3, 1.0)
    """
    if not isinstance(data, VerticalData | VerticalDataset):
        raise ConfigError(
            "cross_validate needs VerticalData or a VerticalDataset, but got "
            f"{type(data).__name__}."
        )
    if model is None:
        model = default_model()

    def model_for(part: AnyData) -> Any:
        # the model of a fold may depend on its columns, which are prepared anew
        if callable(model):
            return model(part)
        return model

    whole = replace(data, test=None)
    fold = fold_numbers(folds, whole.labels, has_classes(model_for(whole), whole), seed)
    runs, found = [], []
    for number in range(int(fold.max()) + 1):
        # held out for all clients at once: a sample is whole, or not there
        inside = fold == number
        note = (
            f"Held out for the test: fold {number}, {int(inside.sum())} of {whole.samples} samples."
        )
        part = whole.parted(np.flatnonzero(~inside), np.flatnonzero(inside), note)
        run = train(
            part,
            model_for(part),
            network,
            method,
            stop,
            costs,
            seed,
            standardise,
            watch,
            compute=compute,
            metrics=metrics,
        )

        runs.append(check_trained(run, f"Fold {number}"))
        found.append(final_metrics(run, part, metrics))
    return CrossValidation(tuple(runs), tuple(found), fold)


def has_classes(model: object, data: AnyData) -> bool:
    """Whether the model predicts classes of this data.

    Parameters
    ----------
    model
        A model of any kind.
    data
        The samples, whose labels decide where the model leaves it open.
    """
    try:
        kind = kind_of(model)
    except ConfigError:
        raise ConfigError(
            "cross_validate needs a Glm, Trees, Mixed or a SplitModel, or a function that makes "
            f"one, but got {model!r}."
        ) from None
    return kind.has_classes(model, data.labels)


def fold_numbers(
    folds: int | ArrayLike, labels: NDArray[Any], of_classes: bool, seed: int
) -> NDArray[np.intp]:
    """The fold of each sample: 0, 1, ...; in all folds about the same share of every class.

    ``folds`` is their number, or holds a fold for each sample.

    >>> fold_numbers(2, np.array(["a", "b", "a", "b"]), True, 0).tolist()
    [1, 1, 0, 0]
    """
    if not isinstance(folds, int | np.integer):
        return _given(folds, len(labels))
    check_whole("folds", folds, least=2)
    if folds > len(labels):
        raise DataError(
            f"There are {len(labels)} samples, too few for {folds} folds: ask for fewer."
        )

    order = stream(seed, "folds").permutation(len(labels))
    if of_classes:
        classes, counts = np.unique(labels, return_counts=True)
        few = int(counts.argmin())
        if counts[few] < folds:
            raise DataError(
                f"Class {classes[few].item()!r} has {counts[few]} sample(s), too few for {folds} "
                "folds: ask for fewer folds, or leave the class out."
            )
        order = order[np.argsort(labels[order], kind="stable")]  # class after class

    # dealt out one by one, like cards: of every class, folds get as many as each other, or one more
    numbers = np.empty(len(labels), dtype=np.intp)
    numbers[order] = np.arange(len(labels)) % folds
    return numbers


def _given(folds: ArrayLike, samples: int) -> NDArray[np.intp]:
    try:
        numbers = np.asarray(folds)
        if numbers.shape != (samples,):
            raise ValueError
        # any names of folds: they become 0, 1, ... in sorted order
        found, numbers = np.unique(numbers, return_inverse=True)
    except (TypeError, ValueError):  # of ragged lists, and of values that cannot be sorted
        raise ConfigError(
            f"folds must be a number of folds, or a fold for each of the {samples} samples."
        ) from None

    if len(found) < 2:
        raise ConfigError("folds: all samples are in one fold: give at least two.")
    return numbers.astype(np.intp)
