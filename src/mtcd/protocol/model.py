"""The interfaces of models. Any model that implements them can be trained.

Linear models are stateless: parameters are arguments and results. Networks hold their parameters.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, TypeAlias

from mtcd.core.arrays import Array, Rows
from mtcd.protocol.batches import Batches

# the most hops at the start of a training in which parties only measure their gains
MOST_MEASURED = 50


@dataclass(slots=True)
class Gains:
    """What a token knows about gains, the decreases of the loss that a party's next update
    promises.

    ``others``: the largest latest gain of the other parties; None if the token has met none.
    ``own``: written by the visit, for the parties that follow; None if the family does not compare
    gains. ``awaited``: whether the visit is to measure its gain only, since the token has yet to
    learn those of other parties.
    """

    others: float | None
    own: float | None = None
    awaited: bool = False


class LocalUpdates(NamedTuple):
    """The local updates of one visit: ``Q`` steps of the size ``eta``, on all samples or on these
    ``rows``.

    ``majorise``: steps on the quadratic upper bound of f at the aggregate, instead of f. ``newton``:
    each minimises f over the block, or nearly, whatever ``eta`` and the bound. ``visit``:
    the token, its iteration and its hop, which seed random draws. ``gains``: those that the token
    carries, if parties compare them.
    """

    Q: int
    eta: float
    rows: Rows | None = None
    majorise: bool = False
    visit: tuple[int, ...] = ()
    gains: Gains | None = None
    newton: bool = False


# No type of its own: methods add, scale and send parameters, and look at nothing else of them.
Theta: TypeAlias = Any
"""theta_k: an array, or another element of a vector space, such as an ensemble of trees."""


class Fit(Protocol):
    """The loss as a function of the aggregate, for given labels."""

    @property
    def curvature(self) -> float:
        """The largest second derivative of the loss of one sample."""

    def scaled(self, A: Array) -> Array:
        """A with its rows scaled such that curvature * |scaled(A) v|^2 bounds the second derivative
        along A v."""

    def objective(self, aggregate: Array, penalty: float) -> float:
        """f, from the aggregate and the sum of penalties of a token."""

    def gradient(self, aggregate: Array) -> Array:
        """The derivative of the loss in the aggregate."""

    def hessian_product(self, aggregate: Array, v: Array) -> Array:
        """The second derivative of the loss in the aggregate, times v."""


class ClientModel(Protocol):
    """The representation model h_k of one client, with its data. It holds no parameters."""

    def initial(self) -> Theta:
        """theta_k at the start."""

    def represent(self, theta: Theta, rows: Rows | None = None) -> Array:
        """h_k(theta_k), on all samples or on these rows."""

    def penalty(self, theta: Theta) -> float:
        """r(theta_k), the value of the regulariser."""

    def nonsmooth_penalty(self, theta: Theta) -> float:
        """The part of r that is not smooth: l1 times the sum of absolute values."""

    def penalty_product(self, a: Theta, b: Theta) -> float:
        """The inner product behind the smooth part of r, which is half that of theta with
        itself."""

    @property
    def fit(self) -> Fit:
        """The loss with the labels, which every client has."""

    @property
    def smoothness(self) -> float:
        """L_k, the smoothness constant of f in theta_k."""

    def survey(self) -> Array:
        """Statistics of the columns, from which adaptive tours choose step sizes: see
        ``methods/tours/survey.py``."""

    def most_steps(self, majorise: bool) -> int:
        """The most steps of an update of adaptive tours, so that it does not take for ever."""

    def local_update(self, theta: Theta, aggregate: Array, updates: LocalUpdates) -> Theta:
        """Local updates of theta_k; the aggregate is updated in place. Returns the new theta_k.

        An update that changes nothing may return theta itself.
        """


class Problem(Protocol):
    """The models of all clients."""

    @property
    def warm(self) -> bool:
        """Whether theta starts elsewhere than at 0, so that the first token has to be collected."""

    @property
    def samples(self) -> int:
        """N, the number of samples."""

    @property
    def outputs(self) -> int:
        """Numbers per sample in a representation."""

    def client(self, k: int) -> ClientModel:
        """The model of client k, with its data."""

    @property
    def fit(self) -> Fit:
        """The loss with the labels, which the server has."""

    @property
    def nonsmooth(self) -> bool:
        """Whether r has a part that is not smooth."""


Tensor: TypeAlias = Any
"""A tensor of PyTorch. This layer does not import PyTorch."""
State: TypeAlias = Mapping[str, Tensor]
"""A copy theta_k(gamma) of a network: parameters, state of the optimiser, and its contribution to
the aggregate."""


class Visit(NamedTuple):
    """One visit of a token at a client: Q ``local_updates`` of this ``stepsize`` on the batch of
    iteration t.

    ``hop`` distinguishes the visits of a full batch; it is None with mini-batches, where all visits
    of an iteration use the same dropout masks. ``fuses``: theta_0 is updated too.
    ``updates_statistics``: the visit updates running statistics (of batch norm), because no upload
    on this batch follows.
    """

    t: int
    hop: int | None
    local_updates: int
    stepsize: float
    fuses: bool = False
    updates_statistics: bool = False

    @property
    def draw(self) -> tuple[int, ...]:
        """The seed of dropout masks: one draw for each batch, or for each visit of the full
        batch."""
        if self.hop is None:
            return (self.t,)
        return self.t, self.hop


class EpochLoss(NamedTuple):
    """The mean loss of the batches of the last epoch, and that at the start, for the divergence
    rule.

    It depends on Z = (H, theta_0) and the labels only, so one party of a federation can compute it.
    """

    start: float
    loss: float


class ClientNetwork(Protocol):
    """The representation network of one client, with its data and parameters."""

    def represent(self, t: int) -> Tensor:
        """h_k on the batch of iteration t: the client's contribution to the aggregate."""

    def join(self, H: Tensor, t: int) -> Tensor:
        """H with h_k on the batch of iteration t added, unless H contains it."""

    def local_update(self, H: Tensor, theta_0: Sequence[Tensor], visit: Visit) -> Tensor:
        """Local updates of theta_k, and of theta_0 in place if ``visit.fuses``; returns the new
        H."""

    def state(self) -> State:
        """The copy that is loaded."""

    def load(self, state: State) -> None:
        """Make this copy of theta_k the one that is loaded."""

    def full_state(self) -> State:
        """The complete state: the loaded copy, running statistics, state of theta_0's optimiser."""

    def restore(self, memory: State) -> None:
        """Restore a complete state."""

    def weights(self) -> State:
        """Parameters and statistics, for measurements: the network's own tensors, not copies."""

    def mixed(self, start: State, copies: Sequence[State], weight: float) -> State:
        """start + weight * sum of (copy - start)."""


class FusionNetwork(Protocol):
    """The fusion module theta_0 at the server."""

    @property
    def size(self) -> int:
        """The count of numbers in theta_0."""

    def values(self) -> Sequence[Tensor]:
        """The current theta_0, as a token carries it."""

    def weights(self) -> State:
        """Parameters and statistics, for measurements: the network's own tensors, not copies."""

    def full_state(self) -> State:
        """The complete state: parameters, running statistics, state of the optimiser."""

    def restore(self, memory: State) -> None:
        """Restore a complete state."""

    def local_update(self, H: Tensor, t: int, steps: int, eta: float) -> Tensor:
        """Steps of theta_0 on this aggregate of iteration t; returns the loss before the first."""

    def loss(self, H: Tensor, theta_0: Sequence[Tensor], t: int) -> Tensor:
        """The loss of this aggregate and theta_0 on the batch of iteration t. Nothing changes."""

    def blank_loss(self) -> float:
        """The loss on all samples if all representations were 0."""


class SplitStage(Protocol):
    """The networks of all parties, with their data in batches."""

    epoch_loss: Callable[[], EpochLoss | None]
    """The loss at the latest progress, as the reporting party computes it; None before the end of
    an epoch."""

    @property
    def clients(self) -> Sequence[ClientNetwork]:
        """The networks of the clients, in their order."""

    @property
    def fusion(self) -> FusionNetwork:
        """The fusion module, theta_0."""

    @property
    def sums(self) -> bool:
        """Whether H is the sum or the mean of the representations."""

    def aggregate(self, representations: Sequence[Tensor]) -> Tensor:
        """H, of all clients in order."""

    def empty(self) -> Tensor:
        """H without any contribution."""

    def lane(self, token: int) -> AbstractContextManager[object]:
        """The context in which the work for this token runs; lanes of different tokens may run
        concurrently."""

    def join(self) -> None:
        """Wait for all lanes."""


class SplitProblem(Protocol):
    """A split network with its data."""

    @property
    def samples(self) -> int:
        """N, the number of samples."""

    @property
    def outputs(self) -> int:
        """Numbers per sample in the aggregate."""

    @property
    def fusion_keeps_statistics(self) -> bool:
        """Whether the fusion module has running statistics, which one party must hold."""

    def stage(self, batches: Batches, lanes: int) -> SplitStage:
        """The networks, with their data in these batches; up to ``lanes`` lanes run
        concurrently."""
