"""train(): joins data, model, network and method, and trains in this process."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any, NamedTuple

import networkx as nx
from numpy.typing import ArrayLike

from mtcd.data.dataset import VerticalDataset
from mtcd.data.sources import BlockSources
from mtcd.data.vertical import VerticalData
from mtcd.engines.choose import MakeEngine, engine_for
from mtcd.engines.kinds import EngineSettings
from mtcd.methods.method import Method, resolved_stepsize
from mtcd.models.trained import Trained
from mtcd.network.topology import Network
from mtcd.privacy.settings import Privacy
from mtcd.protocol.engine import Engine
from mtcd.protocol.ledger.costs import Costs
from mtcd.training.attachments import Attachment, RunListener, listeners_of, with_ended
from mtcd.training.compute import Compute
from mtcd.training.divergence import DIVERGED
from mtcd.training.history import History
from mtcd.training.kinds import Request, resolved
from mtcd.training.observer import INTERRUPTED, Observer, Watch, sentence
from mtcd.training.run import Run
from mtcd.training.stop import Stop
from mtcd.training.training import Training
from mtcd.training.watchers import Started, Watcher, watcher_of


def train(
    data: VerticalData | VerticalDataset | BlockSources,
    model: object | None = None,
    network: Network | nx.Graph | Iterable[tuple[str | int, str | int]] | str = "complete",
    method: Method | None = None,
    stop: Stop | None = None,
    costs: Costs | None = None,
    seed: int = 0,
    standardise: bool = False,
    watch: Watch | None = None,
    compute: Compute | None = None,
    checkpoint: str | Path | None = None,
    resume: bool = False,
    metrics: Sequence[str] | None = None,
    callbacks: Sequence[Any] = (),
    start: Run | Mapping[str, ArrayLike] | None = None,
    privacy: Privacy | None = None,
    engine: EngineSettings | None = None,
) -> Run:
    """Train a model on vertically split data over a network.

    Parameters
    ----------
    data : VerticalData, VerticalDataset or BlockSources
        The features of each client and the labels of all samples: see :func:`split`,
        :func:`read_tables`, :func:`synthetic`.
    model : Glm, Trees, Mixed or SplitModel, optional
        What is trained; ``Glm()``, ridge regression, unless given.
    network : str, Network, networkx.Graph or pairs of clients, default 'complete'
        Who has a link with whom: a kind by name, such as 'path', or the links themselves.
    method : MTCD, STCD(...), SVFL, DCPA or TreeCG, optional
        The algorithm. Left out, it is chosen by the model, and ``run.notes`` says which was taken:
        a token on accelerated tours for a :class:`Glm` (with an l1 penalty, tours with momentum),
        plain tours for trees and mixed families. Split networks need a method with a step size.
    stop : Stop, optional
        When the training ends.
    costs : Costs, optional
        What messages cost, for the column ``cost`` of the history.
    seed : int, default 0
        Determines walks, batches and all other random choices. The same seed gives the same
        iterates, in every engine.
    standardise : bool, default False
        Whether each client scales its columns to mean 0 and variance 1, fitted on the training
        samples.
    watch : callable, optional
        Called with every measurement, and how far along the training is.
    compute : Compute, optional
        The device, precision and threads of split networks.
    checkpoint : str or Path, optional
        A folder in which the state of the training is kept.
    resume : bool, default False
        Whether to continue from ``checkpoint``, to the same iterates.
    metrics : sequence of str, optional
        Names such as 'auc' or 'log_loss', computed on the training samples and on the test set of
        the data. By default accuracy and AUC of two classes, accuracy and F1 of more, RMSE and R2
        of values; () for none.
    callbacks : sequence of Callback, optional
        Called while it trains; they may end it.
    start : Run or mapping from clients to parameters, optional
        Where a :class:`Glm` starts, with mtcd, stcd or svfl: an earlier run on the same clients and
        columns, or parameters as in ``run.parameters``. The first token is then not zero, and
        collecting it is on the ledger: an upload of every client, or with stcd a first pass of the
        token through all of them.
    privacy : Privacy, optional
        What parties may learn of each other: ``Privacy(mode="sealed")`` encrypts the token
        (docs/privacy.md).
    engine : Ray, optional
        Where the parties run: in this process unless given (docs/ray.md). The iterates are the
        same.

    Returns
    -------
    Run
        The trained model, its history, and a ledger of what was sent.

    Raises
    ------
    MtcdError
        If the parts do not fit together. Its text says what was wrong and what to do. A training
        that diverges is no error: ``run.status`` says so.

    Examples
    --------
    >>> import mtcd
    >>> data = mtcd.synthetic("ridge", samples=50, features=12, clients=4)
    >>> run = mtcd.train(data, mtcd.Glm("ridge", alpha=1.0), "path", mtcd.STCD(local_updates=5), mtcd.Stop(gap=1e-6))
    >>> run.status, run.coefficients.shape
    ('converged', (12,))
    """
    asked = Request(
        data=data,
        model=model,
        network=network,
        method=method,
        stop=stop,
        costs=costs or Costs(),
        seed=seed,
        standardise=standardise,
        compute=compute,
        checkpoint=checkpoint,
        resume=resume,
        metrics=metrics,
        start=start,
        privacy=privacy or Privacy(),
        engine=engine,
    )
    # from here on nothing is left to be chosen: inspect() does the same
    asked, kind, notes = resolved(asked)
    # Sources are read in the processes of the engine: it must be there before the training is made.
    with asked.connected():
        training = kind.training(asked)
        make_engine: MakeEngine = engine_for
        if engine is not None:
            make_engine = engine.maker(training.recipe())
        run = run_training(training, asked.costs, watch, make_engine, callbacks, notes)
    return with_ended(run, asked.data)


def run_training(
    training: Training,
    costs: Costs,
    watch: Watch | None,
    make_engine: MakeEngine = engine_for,
    callbacks: Sequence[Any] = (),
    notes: tuple[str, ...] = (),
) -> Run:
    """Train to the end, in any engine. ``notes`` are the first of the run."""
    watcher = watcher_of(callbacks, training.trained)
    # noise on gradients is of no use if callbacks decide by exact measurements
    if training.method.conditions.noisy:
        watcher.check_private()
    # Closed in any case: a callback may hold a file, or a run of a server.
    try:
        run = _run(training, costs, watch, make_engine, watcher, notes)
        watcher.end(run)
        return run
    finally:
        watcher.close()


def _run(
    training: Training,
    costs: Costs,
    watch: Watch | None,
    make_engine: MakeEngine,
    watcher: Watcher,
    first_notes: tuple[str, ...],
) -> Run:
    """Train in an engine, and put together what came of it."""
    parties = training.parties()
    with training.computing(), make_engine(parties, training.ledger()) as engine:
        listeners = listeners_of(training, parties, engine.ledger)
        engine.listeners = listeners
        # after the listeners: a checkpoint restores them too
        observer = _observer(training, costs, engine, watcher)
        watcher.start(_started(training, observer, listeners))

        account = training.account()
        account.begin()  # noise counts from here on, whatever becomes of the training
        status = observer.run(training.stop, watch)

        # the engine's parties, which hold the parameters, are gone after this block
        ended = _Ended()
        if status != DIVERGED:
            ended = _ended(training, engine, watcher)
        attachments: dict[str, Attachment] = {}
        for name, listener in listeners.items():
            attachments[name] = listener.attachment(observer.rows, ended.parameters)

    # Parameters that are not finite: found only when the model is made.
    if ended.model is None:
        status = DIVERGED

    rows = observer.rows
    begun = 0
    if rows:
        # an interrupt may be within an iteration
        begun = rows[-1].iteration + (status == INTERRUPTED)
    # Fewer than entered, if the training ended early: what was not begun is not spent.
    spending = account.end(begun)
    end_notes = (*training.chosen(observer.slots), *training.end_notes(begun, rows))

    if status == DIVERGED:
        message = training.divergence(bool(rows))
    else:
        message = sentence(status, rows[-1], watcher.stopped)

    method, network = training.method, training.network
    stepsize = None
    if method.stepsize is not None:
        stepsize = resolved_stepsize(method)
    return Run(
        status=status,
        message=message,
        method=method.describe(),
        stepsize=stepsize,
        history=History(rows),
        ledger=engine.ledger,
        costs=costs,
        model=ended.model,
        notes=(*first_notes, *network.notes, *training.notes, *ended.notes, *spending, *end_notes),
        attachments=attachments,
    )


def _observer(training: Training, costs: Costs, engine: Engine, watcher: Watcher) -> Observer:
    """What measures the training; it continues from a checkpoint where one is to be resumed."""
    checkpoints = training.checkpoints
    keep = None
    if checkpoints is not None:
        keep = checkpoints.write

    observer = Observer(
        training.problem,
        engine,
        costs,
        training.best,
        training.worst_end,
        pace=training.pace,
        keep=keep,
        watcher=watcher,
    )
    if checkpoints is not None and checkpoints.resumes:
        checkpoints.restore(observer)
    return observer


def _started(
    training: Training, observer: Observer, listeners: Mapping[str, RunListener]
) -> Started:
    """What watchers are told at the start."""
    return Started(
        training.method.describe(),
        training.network.clients,
        settings_of(training),
        tuple(observer.rows),
        observer.engine.ledger,
        lambda name: listeners[name].attachment(observer.rows, running=True),
    )


class _Ended(NamedTuple):
    """The trained model, its parameters, and notes on them; nothing of a training that diverged."""

    model: Trained | None = None
    parameters: Sequence[Any] | None = None
    notes: tuple[str, ...] = ()


def _ended(training: Training, engine: Engine, watcher: Watcher) -> _Ended:
    """The model at the end, or the one that a callback has chosen."""
    notes: tuple[str, ...] = ()
    # a callback may have kept a better model than the last one
    chosen = watcher.chosen()
    if chosen is None:
        parameters: Sequence[Any] = engine.parameters()
    else:
        parameters, note = chosen
        notes = (note,)

    model = training.trained(parameters)
    if model is None:
        # there is no model of parameters that are not finite: then nothing else is kept of them
        return _Ended(notes=notes)
    return _Ended(model, parameters, notes)


def settings_of(training: Training) -> dict[str, Any]:
    """The settings of a training by name, for logs of experiments."""
    found: dict[str, Any] = {"method.kind": training.method.kind}
    parts: dict[str, Any] = {"method": training.method, "stop": training.stop}
    for part, given in parts.items():
        # Only what was set: None says that a default holds, which the values of others follow.
        for one in fields(given):
            value = getattr(given, one.name)
            if value is not None:
                found[f"{part}.{one.name}"] = value

    return found | {"clients": training.network.size, "seed": training.seed}
