"""train(): joins data, model, network and method, and trains in this process."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import fields
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import networkx as nx
from numpy.typing import ArrayLike

from mtcd.additive_training import AdditiveTraining
from mtcd.callbacks import Callback
from mtcd.callbacks.calling import Calling
from mtcd.checkpoints import Checkpoints
from mtcd.checks import check_whole
from mtcd.data.dataset import VerticalDataset
from mtcd.data.sources import BlockSources
from mtcd.data.vertical import VerticalData
from mtcd.divergence import DIVERGED
from mtcd.engines.choose import MakeEngine, engine_for
from mtcd.engines.kinds import EngineSettings
from mtcd.errors import ConfigError
from mtcd.families.additive import Additive
from mtcd.families.trained import TrainedAdditive
from mtcd.history import History
from mtcd.ledger.costs import Costs
from mtcd.ledger.ledger import Ledger
from mtcd.linear_training import LinearTraining
from mtcd.methods.method import Method, with_privacy
from mtcd.model.linear import Glm
from mtcd.model.trained import TrainedModel
from mtcd.network.edges import network_from_edges
from mtcd.network.topology import Network, make_network
from mtcd.observing import Observer, Scored, Watch, sentence
from mtcd.pace import Pace
from mtcd.privacy import Privacy
from mtcd.protocol.engine import Recipe
from mtcd.protocol.party import Parties
from mtcd.protocol.tracer import Tracer
from mtcd.run import Run
from mtcd.sourced_training import SourcedTraining
from mtcd.splitnet.compute import Compute
from mtcd.stop import Stop
from mtcd.trace import Trace

if TYPE_CHECKING:
    from mtcd.splitnet.model import SplitModel
    from mtcd.splitnet.trained import TrainedSplit


def train(
    data: VerticalData | VerticalDataset | BlockSources,
    model: Glm | SplitModel | Additive | None = None,
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
    callbacks: Sequence[Callback] = (),
    start: Run | Mapping[str, ArrayLike] | None = None,
    privacy: Privacy | None = None,
    engine: EngineSettings | None = None,
) -> Run:
    """Train a model on vertically split data over a network, and return the :class:`Run`.

    A :class:`Glm`: f(theta) = sum_n l(sum_k x_nk . theta_k, y_n) + sum_k r(theta_k). :class:`Trees`: boosted trees at
    every client; :class:`Mixed`: another family of models at each. A :class:`SplitModel`: a module for every client,
    on vertical data or a :class:`VerticalDataset`.

    ``network`` is a kind by name, a networkx graph over the clients, pairs of clients, or a :class:`Network`;
    ``method`` is MTCD(...), STCD(...), SVFL(...), DCPA(...) or TreeCG(). ``watch`` is called with every measurement and
    how far along it is. ``checkpoint`` names a folder in which the state of the training is kept, and with ``resume``
    it goes on from there, to the same iterates. ``callbacks`` are called while it trains, and may end it
    (:class:`Callback`). ``compute`` says where split networks run.

    ``metrics`` are names such as ("auc", "log_loss"), computed on the training samples, and on the test set if the data
    has one (``data.holdout(0.2)``): see ``history.metrics``. By default accuracy and AUC of two classes, accuracy and
    F1 of more, RMSE and R2 of values; () for none.

    ``start`` is an earlier run of the same clients and columns, or parameters by client as in ``run.parameters``, from
    which a :class:`Glm` is trained by mtcd, stcd or svfl. The first token is then not zero, and collecting it is on
    the ledger: an upload of every client, or with stcd a first pass of the token through all of them.

    ``privacy`` says what parties may learn of each other: Privacy(mode="sealed") encrypts the token (docs/privacy.md).

    ``engine`` is where the parties run: in this process unless given, or ``mtcd.Ray(...)``, on the processes and
    machines of one owner (docs/ray.md). The iterates are the same.

    >>> import mtcd
    >>> data = mtcd.synthetic("ridge", samples=50, features=12, clients=4)
    >>> run = mtcd.train(data, mtcd.Glm("ridge", alpha=1.0), "path", mtcd.STCD(local_updates=5), mtcd.Stop(gap=1e-6))
    >>> run.status, run.coefficients.shape
    ('converged', (12,))
    """
    if not isinstance(method, Method):
        raise ConfigError(
            f"train needs a method, MTCD(...), STCD(...), SVFL(...), DCPA(...) or TreeCG(), but got {method!r}."
        )
    costs, privacy = costs or Costs(), privacy or Privacy()
    if isinstance(data, BlockSources) and (engine is None or not isinstance(model or Glm(), Glm)):
        data = data.read()
    kinds = (
        (data, (VerticalData, VerticalDataset, BlockSources)),
        (stop or Stop(gap=1), Stop),
        (costs, Costs),
        (privacy, Privacy),
    )
    for given, kind in kinds:
        if not isinstance(given, kind):
            names = " or ".join(one.__name__ for one in (kind if isinstance(kind, tuple) else (kind,)))
            raise ConfigError(f"train needs a {names}, but got {given!r}.")
    method = with_privacy(method, privacy, split=not isinstance(model or Glm(), (Glm, Additive)))
    check_whole("seed", seed, least=0)
    if engine is not None and not isinstance(engine, EngineSettings):
        raise ConfigError(f"engine must be a kind of engine, such as mtcd.Ray(), but is {engine!r}.")
    if resume and checkpoint is None:
        raise ConfigError("resume needs checkpoint: the folder of the training to go on with.")
    training: Training
    if model is None or isinstance(model, Glm):
        if isinstance(data, BlockSources) and engine is not None:
            if start is not None:
                raise ConfigError("start needs the data in this process: give data.read() instead of its sources.")
            over = as_network(network, data.clients, seed)
            stop = stop or Stop(iterations=10_000)
            stop.check(method, over, costs)
            parts = (data, model or Glm(), over, method, stop, seed, standardise, engine)
            with engine.connected():
                sourced = SourcedTraining(*parts, costs, checkpoint, resume, metrics)
                return run_training(sourced, costs, watch, engine.maker(sourced.recipe()), callbacks)
        if not isinstance(data, VerticalData):
            raise ConfigError("A Glm is trained on VerticalData, a table: make it with mtcd.split or mtcd.read_tables.")
        if compute is not None:
            raise ConfigError("compute is for split networks: leave it out for a Glm.")
        stop, over = stop or Stop(iterations=10_000), as_network(network, data.clients, seed)
        stop.check(method, over, costs)
        training = LinearTraining(
            data, model or Glm(), over, method, stop, seed, standardise, costs, checkpoint, resume, metrics, start
        )
    elif isinstance(model, Additive):
        if not isinstance(data, VerticalData):
            raise ConfigError(
                "Trees are trained on VerticalData, a table: make it with mtcd.split or mtcd.read_tables."
            )
        for name, unused in (("compute", compute), ("standardise", standardise or None), ("start", start)):
            if unused is not None:
                raise ConfigError(f"{name} is not for trees: leave it out.")
        stop, over = stop or Stop(iterations=100), as_network(network, data.clients, seed)
        stop.check(method, over, costs)
        training = AdditiveTraining(data, model, over, method, stop, seed, costs, checkpoint, resume, metrics)
    else:
        from mtcd.split_training import SplitTraining

        assert not isinstance(data, BlockSources)
        if standardise:
            raise ConfigError("standardise is for a Glm: scale the features of a split network yourself.")
        if start is not None:
            raise ConfigError(
                "start is for a Glm: to go on with networks, give the SplitModel the modules and the fusion of the run."
            )
        stop = stop or (Stop(iterations=1000) if method.batch is None else Stop(epochs=10))
        over, compute = as_network(network, data.clients, seed), compute or Compute()
        stop.check(method, over, costs)
        training = SplitTraining(data, model, over, method, stop, costs, seed, compute, checkpoint, resume, metrics)
    make_engine = engine_for if engine is None else engine.maker(training.recipe())
    return run_training(training, costs, watch, make_engine, callbacks)


class Training(Protocol):
    """A model on its data, with a method over a network: the parts that differ for linear models and split networks."""

    network: Network
    method: Method
    """The training with a resolved step size."""
    stop: Stop
    seed: int
    worst_end: float

    @property
    def problem(self) -> Scored:
        """The problem that is measured."""

    @property
    def best(self) -> float | None:
        """f*, if a gap is requested."""

    @property
    def pace(self) -> Pace:
        """The spacing of measurements."""

    @property
    def notes(self) -> tuple[str, ...]:
        """The notes of the run, for the user."""

    @property
    def checkpoints(self) -> Checkpoints | None:
        """The checkpoint file, if any."""

    def computing(self) -> AbstractContextManager[object]:
        """The context in which the training runs."""

    def parties(self) -> Parties:
        """The parties, ready to start."""

    def recipe(self) -> Recipe:
        """How the same parties are made in several processes."""

    def ledger(self) -> Ledger:
        """An empty ledger, with the bytes of a number."""

    def trained(self, parameters: Sequence[Any]) -> TrainedModel | TrainedAdditive | TrainedSplit | None:
        """The model with these parameters; None if they are not finite."""

    def divergence(self, measured: bool) -> str:
        """The reason of a divergence, and advice; ``measured``: whether there is any measurement."""


def run_training(
    training: Training,
    costs: Costs,
    watch: Watch | None,
    make_engine: MakeEngine = engine_for,
    callbacks: Sequence[Callback] = (),
) -> Run:
    """Train to the end, in any engine."""
    calling = Calling(callbacks, training.trained)
    try:
        run = _run(training, costs, watch, make_engine, calling)
        calling.end(run)
        return run
    finally:
        calling.close()


def _run(training: Training, costs: Costs, watch: Watch | None, make_engine: MakeEngine, calling: Calling) -> Run:
    stop, method, checkpoints, network = training.stop, training.method, training.checkpoints, training.network
    parties = training.parties()
    trace = Trace.of(network, method.token_clusters(network, training.seed), parties.server is not None)
    with training.computing(), make_engine(parties, training.ledger()) as engine:
        engine.tracer = tracer = Tracer(network.size, method.hops_per_sync, engine.ledger)
        keep = None if checkpoints is None else checkpoints.write
        observer = Observer(
            training.problem,
            engine,
            costs,
            training.best,
            training.worst_end,
            pace=training.pace,
            keep=keep,
            callbacks=calling,
        )
        if checkpoints is not None and checkpoints.resumes:
            checkpoints.restore(observer)
        so_far = partial(trace.with_messages, tracer, observer.rows, latest=True)
        calling.start(method.describe(), network.clients, settings_of(training), observer.rows, engine.ledger, so_far)
        status = observer.run(stop, watch)
        parameters, notes = ([], ()) if status == DIVERGED else calling.chosen(engine.parameters())
        model = None if status == DIVERGED else training.trained(parameters)
        trace = trace.with_messages(tracer, observer.rows)
        trace = trace if model is None else trace.with_blocks(parameters)
    status = DIVERGED if model is None else status
    rows = observer.rows
    return Run(
        status=status,
        message=training.divergence(bool(rows)) if status == DIVERGED else sentence(status, rows[-1], calling.stopped),
        method=method.describe(),
        stepsize=None if method.stepsize is None else method.resolved_stepsize(),
        history=History(rows),
        ledger=engine.ledger,
        costs=costs,
        model=model,
        notes=(*network.notes, *training.notes, *notes, *method.end_notes(network, rows[-1].iteration if rows else 0)),
        trace=trace,
    )


def settings_of(training: Training) -> dict[str, Any]:
    """The settings of a training by name, for logs of experiments."""
    parts: dict[str, Any] = {"method": training.method, "stop": training.stop}
    found = {f"{part}.{one.name}": getattr(given, one.name) for part, given in parts.items() for one in fields(given)}
    known = {name: value for name, value in found.items() if value is not None}
    return {"method.kind": training.method.kind, **known, "clients": training.network.size, "seed": training.seed}


def as_network(
    network: Network | nx.Graph | Iterable[tuple[str | int, str | int]] | str, clients: tuple[str, ...], seed: int
) -> Network:
    """The network from a name, graph or edges, checked against the clients."""
    if isinstance(network, str):
        return make_network(network, clients, seed=seed)
    if isinstance(network, Network):
        if network.clients != clients:
            raise ConfigError("The network and the data do not have the same clients in the same order.")
        return network
    if not isinstance(network, nx.Graph | Iterable):
        raise ConfigError(f"network must be a name, a graph, edges or a Network, but is {network!r}.")
    return network_from_edges(network, clients)
