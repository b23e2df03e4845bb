"""A split network on data: the networks of all parties, and the measurements that need all of
them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from functools import cached_property
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

import torch
from torch import Tensor

from mtcd.core.errors import ConfigError
from mtcd.data.dataset import VerticalDataset
from mtcd.models.metrics import Metrics
from mtcd.models.metrics.metric import Score
from mtcd.models.splitnet.aggregation import make_aggregation
from mtcd.models.splitnet.client import NetClient, Surroundings
from mtcd.models.splitnet.feed import BatchRows, Feed, Source, Stored, make_source
from mtcd.models.splitnet.fusion import CHUNK, NetFusion
from mtcd.models.splitnet.graphs import GraphClient, GraphFusion
from mtcd.models.splitnet.labels import classes_of, decide, encode, find_loss, split_outputs
from mtcd.models.splitnet.lanes import Lanes
from mtcd.models.splitnet.modules import Trainable
from mtcd.models.splitnet.optimiser import MakeOptimiser, capturable, make_optimiser, plain_sgd
from mtcd.models.splitnet.trial import (
    FUSION,
    SAMPLES,
    begin_client,
    begin_fusion,
    named,
    trained_on,
)
from mtcd.protocol.batches import Batches
from mtcd.protocol.model import ClientNetwork, EpochLoss
from mtcd.training.compute import Compute

if TYPE_CHECKING:
    from mtcd.models.splitnet.model import SplitModel

Client = TypeVar("Client", bound=NetClient)


class Stage:
    """The networks of all parties, with their data in batches."""

    def __init__(
        self,
        clients: Sequence[ClientNetwork],
        fusion: NetFusion,
        around: Surroundings,
        samples: int,
        lanes: Lanes,
    ) -> None:
        self.clients = clients
        self.fusion = fusion
        self.around = around
        self.samples = samples
        self.lane, self.join = lanes.lane, lanes.join
        self.epoch_loss: Callable[[], EpochLoss | None] = lambda: None

    @property
    def sums(self) -> bool:
        """Whether H is the sum or the mean of the representations."""
        return self.around.aggregation.sums

    def aggregate(self, representations: Sequence[Tensor]) -> Tensor:
        """H, of all clients in order."""
        return self.around.aggregation.of(representations)

    def empty(self) -> Tensor:
        """H without any contribution."""
        return torch.zeros(self.samples, self.around.aggregation.width, device=self.around.device)


class RemoteClient:
    """A placeholder for a client in another process; every access is an error."""

    def __getattr__(self, name: str) -> NoReturn:
        raise AssertionError(f"{name}: this client is in another process")


class NetProblem:
    """A split network on data. Its modules are copies of the user's, and hold the state of one
    training."""

    def __init__(
        self, model: SplitModel, data: VerticalDataset, compute: Compute, seed: int
    ) -> None:
        self.model = model
        self.data = data
        self.compute = compute
        self.seed = seed
        self.device = find_device(compute.device)
        loss, has_classes = find_loss(model.loss, data.labels, model.label_noise)
        self.classes = classes_of(data.labels) if has_classes else None
        self.labels = encode(data.labels, self.classes).to(self.device)
        self.sources = self._sources(data)
        self.notes: tuple[str, ...] = ()
        # The optimiser depends on whether its steps can be recorded, and networks need the
        # optimiser.
        self.graphs, self.make_optimiser = self._graphs()
        make, reps = self.make_optimiser, model.representations
        self.nets = [Trainable(reps[client], self.device, make) for client in data.clients]
        self.fusion = Trainable(model.fusion, self.device, make)
        # The first call of each network makes lazy layers, in the order of clients and from a seed
        # of each.
        tried = list(zip(data.clients, self.nets, self.sources, strict=True))
        widths = []
        for k, (client, net, source) in enumerate(tried):
            widths.append(begin_client(k, client, net, source, seed))
        aggregation = make_aggregation(model.aggregation, data.clients, widths)
        begin_fusion(self.fusion, aggregation, self.labels, self.classes, loss, seed)
        draws = self._try_training(SAMPLES, aggregation.width)
        self.around = Surroundings(
            loss, aggregation, self.device, compute.precision == "mixed", seed, draws
        )
        self.staged: list[NetClient] = []
        self.chosen = Metrics({})
        """The metrics of a score."""

    def _try_training(self, samples: int, width: int) -> bool:
        """Reject modules that fail on such a batch in training mode; returns whether any draws
        random numbers."""
        tried = []
        for k in self.numbers:
            x = self.sources[k].rows(torch.arange(samples))
            tried.append((self.nets[k], x, named(self.clients[k])))
        zero = torch.zeros(samples, width, device=self.device)
        tried.append((self.fusion, zero, FUSION))
        # All of them are tried, also after one that draws.
        draws = [trained_on(one.module, x, name) for one, x, name in tried]
        return any(draws)

    def _graphs(self) -> tuple[bool, MakeOptimiser]:
        """Whether local updates are recorded and replayed, and the optimiser for it."""
        make = self.model.optimiser or plain_sgd
        unwanted = self.compute.graphs is False
        if self.device.type != "cuda" or unwanted:
            if self.compute.graphs is True:
                raise ConfigError(
                    "compute.graphs: true needs a GPU; leave it out, or set it to auto."
                )
            return False, make
        recordable = capturable(make, self.device)
        try:
            # One number is enough to find out whether this optimiser can be recorded.
            one = torch.zeros(1, device=self.device, requires_grad=True)
            make_optimiser(recordable, [one])
        except ConfigError as error:
            if self.compute.graphs is True:
                raise
            self.notes = (f"Without CUDA graphs, which are faster: {error}.",)
            return False, make
        return True, recordable

    @property
    def clients(self) -> tuple[str, ...]:
        """The names of the clients."""
        return self.data.clients

    @property
    def numbers(self) -> Sequence[int]:
        """The clients whose networks are in this process."""
        return range(len(self.clients))

    @property
    def samples(self) -> int:
        """The number of training samples, N."""
        return self.data.samples

    @property
    def outputs(self) -> int:
        """Numbers per sample in the aggregate."""
        return self.around.aggregation.width

    @property
    def fusion_keeps_statistics(self) -> bool:
        """Whether the fusion module has batch norm."""
        return bool(self.fusion.norms)

    def stage(self, batches: Batches, lanes: int) -> Stage:
        """The networks, with their data in these batches; up to ``lanes`` lanes run
        concurrently."""
        transforms = self.data.transforms or {}
        if transforms and batches.size is None:
            raise ConfigError(
                "transforms change batches from one to the next: set method.batch, or leave them "
                "out."
            )
        if batches.length == 1:  # all others are no smaller than the batch that was tried
            self._try_training(batches.length, self.outputs)

        def feed(source: Source, client: str = "") -> Feed:
            return Feed(source, BatchRows(batches, self.device), transforms.get(client), client)

        def client(role: type[Client], k: int) -> Client:
            # Each client has a fusion module of its own, as several tokens may carry different
            # theta_0.
            # lazy layers are initialised
            fusion = Trainable(self.fusion.module, self.device, self.make_optimiser)
            features = feed(self.sources[k], self.clients[k])
            return role(k, self.nets[k], fusion, features, feed(labels), self.around)

        labels = Stored(self.labels)
        numbers = self.numbers
        recorded = []
        if self.graphs:
            recorded = [client(GraphClient, k) for k in numbers]
            self.graphs = self._prepare(recorded)
        # All networks are recorded, or none: both versions in one training would round differently.
        if self.graphs:
            self.staged = list(recorded)
        else:
            self.staged = [client(NetClient, k) for k in numbers]
        here = dict(zip(numbers, self.staged, strict=True))
        everybody: list[Any] = [here.get(k) or RemoteClient() for k in range(len(self.clients))]
        head = GraphFusion if self.graphs else NetFusion
        # Dropout has one generator per device: lanes that draw at once would draw in any order.
        own_lanes = self.graphs and not self.around.draws
        streams = Lanes(self.device, lanes if own_lanes else 1)
        return Stage(
            everybody,
            head(self.fusion, feed(labels), self.around),
            self.around,
            self.samples,
            streams,
        )

    def _prepare(self, clients: Sequence[GraphClient]) -> bool:
        """Whether all networks can be recorded."""
        try:
            for client in clients:
                client.prepare()
        except RuntimeError as error:
            reason = str(error).splitlines()[0]
            if self.compute.graphs is True:
                raise ConfigError(
                    f"compute.graphs: a network cannot be recorded: {reason}"
                ) from None
            self.notes += (
                f"Without CUDA graphs, which are faster: a network cannot be recorded ({reason}).",
            )
            return False
        return True

    def read_off(self, aggregate: Tensor, penalty: float) -> float:
        """Not available: f in evaluation mode does not follow from the token of a batch."""
        raise NotImplementedError

    def metrics(
        self, aggregate: Tensor, parameters: Callable[[], Sequence[Mapping[str, Tensor]]]
    ) -> dict[str, float]:
        """Not available, for the same reason: the metrics are in the score."""
        raise NotImplementedError

    def hold(self, parameters: Sequence[Mapping[str, Tensor]]) -> None:
        """Copy the weights of all clients and, last, of the fusion module into these modules."""
        for net, weights in zip((*self.nets, self.fusion), parameters, strict=True):
            net.load_weights(weights)

    def score(self, parameters: Sequence[Mapping[str, Tensor]]) -> Score:
        """The mean loss and accuracy on the training samples, the accuracy on the test samples, and
        the metrics on both, all in evaluation mode, with these weights of all networks: for
        measuring only.
        """
        self.hold(parameters)
        objective, accuracy, metrics = self._evaluate("train", self.sources, self.labels)
        if self._test is None or (self.classes is None and not self.chosen):
            return Score(objective, accuracy, None, metrics)
        _, test_accuracy, test_metrics = self._evaluate("test", *self._test)
        return Score(objective, accuracy, test_accuracy, metrics | test_metrics)

    def _evaluate(
        self, part: str, sources: Sequence[Source], labels: Tensor
    ) -> tuple[float, float | None, dict[str, float]]:
        # On the device: a number that is read at every chunk would wait for all work before it.
        total, right = torch.zeros(2, dtype=torch.float64, device=self.device)
        given = []
        for rows, outputs in self._outputs(sources, len(labels)):
            total += self.around.loss(outputs, labels[rows]).double() * len(rows)
            if self.classes is not None:
                right += (decide(outputs, self.classes) == labels[rows]).sum()
            if self.chosen:
                given.append(outputs)
        mean, share = (torch.stack([total, right]) / len(labels)).tolist()
        metrics = {}
        if given:
            known = split_outputs(torch.cat(given), labels.cpu().numpy(), self.classes)
            metrics = self.chosen.measured(part, known)
        return mean, None if self.classes is None else share, metrics

    def _outputs(self, sources: Sequence[Source], samples: int) -> Iterator[tuple[Tensor, Tensor]]:
        with ExitStack() as modes:
            for one in (*self.nets, self.fusion):
                modes.enter_context(one.evaluating())
            modes.enter_context(self.around.precision())
            for rows in torch.split(torch.arange(samples, device=self.device), CHUNK):
                pairs = zip(self.nets, sources, strict=True)
                found = []
                for net, source in pairs:
                    found.append(net.module(net.laid_out(source.rows(rows))).float())
                yield rows, self.fusion.module(self.around.aggregation.of(found)).float()

    def _sources(self, data: VerticalDataset) -> list[Source]:
        return [
            make_source(data.features[client], client, self.device) for client in self.data.clients
        ]

    @cached_property
    def _test(self) -> tuple[list[Source], Tensor] | None:
        test = self.data.test
        if test is None:
            return None
        return (self._sources(test), encode(test.labels, self.classes).to(self.device))


def find_device(name: str) -> torch.device:
    """The device of that name; raises an error if PyTorch does not find it."""
    there = torch.cuda.is_available()
    if name == "auto":
        return torch.device("cuda" if there else "cpu")
    try:
        device = torch.device(name)
    except RuntimeError as error:
        raise ConfigError(f"compute.device: {error}") from None
    # PyTorch accepts 'cuda:7' without that GPU, and fails when it is first used.
    if device.type == "cuda" and (not there or (device.index or 0) >= torch.cuda.device_count()):
        raise ConfigError(
            f"compute.device is {name!r}, but PyTorch finds no such GPU here: use 'auto' or 'cpu'."
        )
    return device
