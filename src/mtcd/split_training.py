"""Training a split network: measured once an epoch, kept on the way, and gone on with."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch

from mtcd.data.dataset import VerticalDataset
from mtcd.data.vertical import VerticalData
from mtcd.divergence import DIVERGED, worst_end_of
from mtcd.errors import ConfigError, MtcdError
from mtcd.files import CHECKPOINT, check_writable
from mtcd.following import Training, Watch, sentence
from mtcd.history import History, Measurement
from mtcd.ledger.costs import Costs
from mtcd.ledger.ledger import Ledger
from mtcd.methods.method import Method
from mtcd.methods.mtcd import MTCD
from mtcd.methods.split_cast import SplitParties
from mtcd.network.topology import Network
from mtcd.pace import Epochs, Growing
from mtcd.protocol.party import Progress
from mtcd.run import Run
from mtcd.splitnet.checkpoint import Checkpoint, load_networks, network_tensors
from mtcd.splitnet.compute import Compute
from mtcd.splitnet.model import SplitModel
from mtcd.splitnet.optimiser import describe_optimiser
from mtcd.splitnet.problem import NetProblem
from mtcd.splitnet.trained import TrainedSplit
from mtcd.stop import Stop

SPACING = 1.1  # with the full batch: measure when the iterations have grown by so much
FLOAT_BYTES = 4
LITTLE_WORK = 5_000_000  # parameters times samples: see benchmarks/networks.py


@dataclass(frozen=True)
class Keeping:
    """The folder for checkpoints, if any, and whether to go on from the one in it."""

    folder: str | Path | None = None
    resume: bool = False

    def __post_init__(self) -> None:
        if self.resume and self.folder is None:
            raise ConfigError("resume needs checkpoint: the folder of the training to go on with.")
        if self.folder is not None:
            check_writable(Path(self.folder))

    @property
    def path(self) -> Path | None:
        """The file."""
        return None if self.folder is None else Path(self.folder) / CHECKPOINT


def train_split(
    data: VerticalDataset | VerticalData,
    model: SplitModel,
    network: Network,
    method: Method,
    stop: Stop | None,
    costs: Costs,
    seed: int,
    watch: Watch | None,
    compute: Compute,
    keeping: Keeping,
) -> Run:
    """Train a split network: see :func:`mtcd.train`."""
    if not isinstance(model, SplitModel):
        raise ConfigError(f"train wants a Glm or a SplitModel, but got {model!r}.")
    stop = stop or (Stop(iterations=1000) if method.batch is None else Stop(epochs=10))
    check_split(method, stop)
    stop.check(method, network, costs)
    problem = model.problem(data, compute, seed)
    largest, batch = max(net.size for net in problem.nets), method.batch or problem.samples
    with _threads(compute.threads or few_threads(largest, batch)):
        parties = method.split(problem, network, seed)
        epoch = stop.epoch(method, problem.samples)
        pace = Growing(epoch, SPACING) if epoch is None or method.batch is None else Epochs(epoch)
        facts = _facts(problem, network, costs) if keeping.path else {}
        if isinstance(method, MTCD) and method.hops is None:
            facts["first_pass"] = method.first_pass
        keeper = _Keeper(keeping, problem, parties, {"method": repr(method), "seed": seed, **facts})
        kept = keeper.read() if keeping.resume else None
        cast = parties.cast() if kept is None else parties.cast_from(kept.facts["parties"], kept.part("parties/"))
        keep = keeper.keep if keeping.path else None
        worst = worst_end_of(method, linear=False)
        training = Training(problem, cast, costs, None, worst, pace=pace, keep=keep, float_bytes=FLOAT_BYTES)
        if kept is not None:
            training.go_on([Measurement(**row) for row in kept.facts["rows"]], Ledger(**kept.facts["ledger"]))
        status = training.follow(stop, watch)
    if not training.rows:
        raise MtcdError(
            "The loss is no number before anything is trained: look at the features and at what modules give."
        )
    return Run(
        status=status,
        message=_divergence(method) if status == DIVERGED else sentence(status, training.rows[-1]),
        method=method.describe(),
        stepsize=method.settled_stepsize(),
        history=History(training.rows),
        ledger=training.ledger,
        costs=costs,
        model=None if status == DIVERGED else assemble(problem),
        notes=(*problem.data.notes, *problem.notes, *outside_guarantee(method), *method.notes(network)),
    )


def _facts(problem: NetProblem, network: Network, costs: Costs) -> dict[str, Any]:
    """What must be the same when a training goes on, beside the method and the seed."""
    loss = problem.model.loss
    links = hashlib.sha256(repr(network.neighbours).encode()).hexdigest()[:8]
    return {
        "clients": list(problem.clients),
        "network": f"{network.size} clients, {network.graph.number_of_edges()} links ({links})",
        "costs": f"ratio {costs.ratio:g}, as {costs.account}{'' if costs.per == 'message' else f', per {costs.per}'}",
        "samples": problem.samples,
        "data": problem.data.fingerprint,
        "classes": None if problem.classes is None else list(problem.classes),
        "parameters": [net.size for net in (*problem.nets, problem.fusion)],
        "aggregation": problem.model.aggregation,
        "loss": getattr(loss, "__name__", type(loss).__name__) if callable(loss) else loss,
        "optimiser": describe_optimiser(problem.nets[0].optimiser),
    }


class _Keeper:
    """Writes checkpoints, and reads the one to go on from."""

    def __init__(self, keeping: Keeping, problem: NetProblem, parties: SplitParties, facts: dict[str, Any]) -> None:
        self.path, self.problem, self.parties, self.facts = keeping.path, problem, parties, facts

    def keep(self, training: Training, progress: Progress) -> None:
        """All that the parties hold now."""
        assert self.path is not None
        where, tensors = self.parties.position()
        facts = {
            **self.facts,
            "parties": where,
            "rows": [asdict(row) for row in training.rows],
            "ledger": training.ledger.to_dict(),
        }
        held = network_tensors(self.problem.staged, self.problem.fusion)
        Checkpoint({**held, **{f"parties/{name}": value for name, value in tensors.items()}}, facts).write(self.path)

    def read(self) -> Checkpoint:
        """The checkpoint, if it is of the same training; its networks are put back."""
        assert self.path is not None
        kept = Checkpoint.read(self.path)
        for name, value in self.facts.items():
            if kept.facts.get(name) != value:
                raise MtcdError(
                    f"The checkpoint {self.path} is of another training: its {name} was {kept.facts.get(name)!r}, "
                    f"now it is {value!r}. Give the same settings, or start without resume in another folder."
                )
        load_networks(kept, self.problem.staged, self.problem.fusion)
        device = self.problem.device
        return Checkpoint({name: value.to(device) for name, value in kept.tensors.items()}, kept.facts)


def assemble(problem: NetProblem) -> TrainedSplit:
    """The trained modules of all parties."""
    modules = {client: net.finished().cpu() for client, net in zip(problem.clients, problem.nets, strict=True)}
    aggregation = problem.around.aggregation
    return TrainedSplit(
        modules,
        problem.fusion.finished().cpu(),
        problem.model.aggregation,
        aggregation.widths,
        problem.classes,
        problem.data.shapes,
    )


@contextmanager
def _threads(count: int | None) -> Iterator[None]:
    """So many threads for one operation, in here."""
    before = torch.get_num_threads()
    torch.set_num_threads(count or before)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def few_threads(size: int, batch: int) -> int | None:
    """One thread where an update of so many numbers is so little work that dividing it takes longer than doing it."""
    return 1 if batch * size < LITTLE_WORK else None


def check_split(method: Method, stop: Stop) -> None:
    """Refuse settings that are for linear models."""
    if method.stepsize == "auto":
        raise ConfigError("stepsize 'auto' needs the smoothness of a linear model: give a number for split networks.")
    if stop.gap is not None:
        raise ConfigError("stop.gap needs the optimum, which nobody knows of a split network: use stop.epochs.")


def outside_guarantee(method: Method) -> tuple[str, ...]:
    """What the paper's guarantee does not cover."""
    if not isinstance(method, MTCD) or method.tokens in (None, 1) or method.combine_rule == "cluster":
        return ()
    return (
        "Tokens may cross: the paper's guarantee for objectives that are not convex is for a token per cluster only.",
    )


def _divergence(method: Method) -> str:
    return (
        f"Diverged: the loss is no number any more, or grew beyond all bounds, with a stepsize of "
        f"{method.settled_stepsize():.4g}. Set a smaller stepsize, or fewer local_updates."
    )
