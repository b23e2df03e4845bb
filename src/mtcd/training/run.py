"""A run: the result of a training. It predicts, and is saved and loaded without pickle."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from mtcd.core import features
from mtcd.core.arrays import Array
from mtcd.core.errors import DataError, DivergedError, MtcdError
from mtcd.core.files import CHECKPOINTS, fresh_folder, write_all
from mtcd.core.mappings import attributes, without_none
from mtcd.core.optional import find
from mtcd.data.dataset import VerticalDataset
from mtcd.data.vertical import VerticalData
from mtcd.models.metrics import Outputs, all_metrics, find_metric
from mtcd.models.trained import Trained
from mtcd.protocol.ledger.costs import Costs
from mtcd.protocol.ledger.ledger import Ledger
from mtcd.training.attachments import Attachment, attachment_names
from mtcd.training.history import LEARNT, History, Measurement


@dataclass(frozen=True, eq=False)
class Run:
    """The result of :func:`mtcd.train`.

    A diverged run has no model: asking for one is an error that says what to do. What only some
    kinds of models have, such as ``run.coefficients``, is the model's own.

    Parameters
    ----------
    status : str
        'converged', 'iterations', 'epochs', 'seconds', 'cost', 'stopped' (by a callback),
        'interrupted' or 'diverged'.
    message : str
        The status in a sentence.
    method : str
        The method and its settings.
    stepsize : float or None
        The step size that was used; None if the method has none.
    history : History
        The measurements.
    ledger : Ledger
        What was sent, by kind of link.
    costs : Costs
        What messages cost.
    model : trained model or None
        None if the training diverged.
    notes : tuple of str
        What the user should know of this training, such as the rule of the step size.
    attachments : mapping from names to attachments
        What features keep beside a run, such as 'trace': which token went from whom to whom.
        ``run.trace`` is the attachment of that name, None if there is none.

    Examples
    --------
    >>> import mtcd
    >>> data = mtcd.synthetic("ridge", samples=40, features=6, clients=3)
    >>> run = mtcd.train(data, mtcd.Glm("ridge"), "path", mtcd.TreeCG(), mtcd.Stop(gap=1e-8))
    >>> run.predict(data).shape, bool(run.history["gap"][-1] <= 1e-8)
    ((40,), True)
    """

    status: str
    message: str
    method: str
    stepsize: float | None
    """The step size that was used; None of a method without one."""
    history: History
    ledger: Ledger
    costs: Costs
    model: Trained | None
    notes: tuple[str, ...] = ()
    attachments: Mapping[str, Attachment] = field(default_factory=dict)

    def __repr__(self) -> str:
        last = self.final
        gap, stepsize = "", ""
        if last.gap is not None:
            gap = f", gap={last.gap:.3g}"
        if self.stepsize is not None:
            stepsize = f", stepsize={self.stepsize:.4g}"
        return (
            f"Run(status={self.status!r}, method={self.method!r}{stepsize},\n"
            f"    objective={last.objective:.6g}{gap}, iterations={last.iteration}, "
            f"cost={last.cost:.6g}, seconds={last.seconds:.3g},\n"
            f"{_metrics_line(last)}    model={self.model!r})"
        )

    def __getattr__(self, name: str) -> Any:
        """An attachment, a function of runs that a feature brings, or a part of the model."""
        # Features first: a part of a model must not hide a function that they promise.
        home = features.parts("mtcd.run").get(name)
        if home is not None:
            return partial(cast(Callable[..., Any], features.load(home)), self)
        if name in attachment_names():
            return self.attachments.get(name)
        if name.startswith("_"):  # Python itself asks, for instance to copy a run
            raise AttributeError(f"'Run' object has no attribute {name!r}")
        # what is left belongs to the model: coefficients of linear ones, trees of others
        return self.trained().part(name)

    def __dir__(self) -> set[str]:
        """The names that ``run.`` can be followed by, for completion; ``dir`` sorts them."""
        names = {*super().__dir__(), *attachment_names(), *features.parts("mtcd.run")}
        if self.model is not None:
            names.update(self.model.offers)
        return names

    @property
    def final(self) -> Measurement:
        """The measurement at the end, which is of the model."""
        return self.history.rows[-1]

    @property
    def objective(self) -> float:
        """f at the end; of a diverged run, the last finite value."""
        return self.final.objective

    @property
    def gap(self) -> float | None:
        """(f - f*)/|f*| at the end; None if no gap was requested."""
        return self.final.gap

    def trained(self) -> Trained:
        """The model; an error if the run diverged."""
        if self.model is None:
            raise DivergedError(f"This run has no model. {self.message}")
        return self.model

    def predict(self, X: Any) -> NDArray[np.generic]:
        """Predictions for new samples: values in regression, the labels of the classes otherwise.

        ``X`` is a matrix with the columns in their original order, vertical data, or a table: a
        data frame of pandas or polars, an Arrow table, a dict of arrays. The columns of a table are
        found by name, in any order; those that the model was not trained on are ignored. For a
        split network it is the features of each client, by its name, or vertical data.
        """
        return self.trained().predict(X)

    def decision_function(self, X: Any) -> NDArray[Any]:
        """The outputs of the model for new samples: a number for each (of two classes, the second
        where it is above 0), or one for every class. ``X`` as in ``predict``.
        """
        return self.trained().decision(X)

    decision = decision_function

    def predict_proba(self, X: Any) -> Array:
        """The probabilities of the ``classes``, a column each. ``X`` as in ``predict``."""
        return self.trained().predict_proba(X)

    @property
    def classes(self) -> tuple[str | float, ...]:
        """The classes, in the order of the columns of ``predict_proba``; none of a model that
        predicts values."""
        return self.trained().known_classes

    def evaluate(self, X: Any, y: Any = None) -> dict[str, float]:
        """All metrics that this model has, on samples with labels ``y``; NaN where one is not
        defined.

        ``X`` as in ``predict``; data with labels, such as ``data.test``, needs no ``y``.
        """
        outputs = self.outputs(X, y)
        return all_metrics(len(outputs.classes), outputs.has_probabilities).of(outputs)

    def score(self, X: Any, y: Any = None) -> float:
        """The accuracy of classes, R2 of values, as in scikit-learn. ``X`` and ``y`` as in
        ``evaluate``."""
        name = "r2"
        if self.classes:
            name = "accuracy"
        return find_metric(name).of(self.outputs(X, y))

    def export_onnx(self, path: str | Path, after_preparation: bool = False) -> list[Path]:
        """Write the model for ONNX runtimes; returns the files. docs/results.md has their inputs
        and outputs.

        A linear model becomes one file. A split network becomes a folder with a file for each
        client, and ``fusion.onnx``. A preparation is not exported: ``after_preparation`` exports
        what comes after it.
        """
        trained = self.trained()
        # The file would predict from columns as given, and be wrong without a word.
        if trained.preparations is not None and not after_preparation:
            raise MtcdError(
                "The preparation of this run's columns cannot be exported to ONNX. To export the "
                "model that comes after it, whose inputs are the prepared columns, ask for that: "
                "after_preparation=True, or --after-preparation."
            )
        files = trained.onnx(Path(path))
        write_all(files)
        return list(files)

    def outputs(self, X: Any, y: Any = None) -> Outputs:
        """What metrics are computed from: the outputs of the model, with the true labels."""
        if y is None:
            if not isinstance(X, VerticalData | VerticalDataset):
                raise DataError("These samples have no labels: give them as y.")
            y = X.labels
        return self.trained().outputs(X, y)

    def summary(self) -> dict[str, Any]:
        """The outcome in plain values: what ``mtcd train --json`` prints."""
        last = self.final
        learnt = attributes(last, LEARNT)
        return {
            "status": self.status,
            "message": self.message,
            "method": self.method,
            "stepsize": self.stepsize,
            "objective": last.objective,
            "gap": last.gap,
            "iterations": last.iteration,
            "hops": last.hops,
            "syncs": last.syncs,
            "cost": last.cost,
            "cost_per": self.costs.both(self.ledger),
            "messages": last.messages,
            "floats": last.floats,
            "bytes": self.ledger.bytes(self.costs.account),
            "sent": {
                "cost": self.costs.total(self.ledger, "sent"),
                "messages": self.ledger.messages("sent"),
                "floats": self.ledger.floats("sent"),
                "bytes": self.ledger.bytes("sent"),
            },
            "seconds": last.seconds,
            **without_none(learnt),
            "metrics": dict(last.metrics),
            "notes": list(self.notes),
        }

    def save(self, folder: str | Path) -> None:
        """Write the run into a folder (JSON, CSV and npz): all of it, or nothing.

        A run that was saved there before is replaced; a folder that holds other files is refused.
        """
        # into a folder beside it, which takes its place once all files are written
        with fresh_folder(Path(folder), self.checkpoints) as writing:
            self.write(writing)

    @property
    def checkpoints(self) -> tuple[str, ...]:
        """The names of checkpoints that stay in a folder when the run is saved in it."""
        if self.model is None:
            return CHECKPOINTS
        return (self.model.checkpoint,)

    def write(self, folder: Path) -> None:
        """Write the files of a run into an existing folder."""
        find("mtcd.training.run_files").write_run(self, folder)

    @staticmethod
    def load(folder: str | Path, model: Any = None, trusted: Sequence[str] = ()) -> Run:
        """Read a run that was saved. Of a split network only the weights are: ``model`` brings the
        modules.

        ``trusted`` names types of transformers that skops does not know, and that may be loaded.
        """
        run: Run = find("mtcd.training.run_files").read_run(Path(folder), model, trusted)
        return run


def _metrics_line(last: Measurement) -> str:
    """A line of ``repr``: the first four metrics."""
    shown = [f"{name}={value:.4g}" for name, value in list(last.metrics.items())[:4]]
    if not shown:
        return ""
    if len(last.metrics) > len(shown):
        shown.append("...")
    return f"    metrics=({', '.join(shown)}),\n"
