"""What the protocol asks of a client's model. Any model with these methods can be trained.

Linear models keep no parameters: these pass through. Networks are large, and keep theirs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, NamedTuple, Protocol, TypeAlias

from mtcd.arrays import Array, Rows
from mtcd.protocol.batches import Batches


class Fit(Protocol):
    """The loss of an aggregate, the labels being known."""

    @property
    def curvature(self) -> float:
        """The largest second derivative of the loss of one sample."""

    def objective(self, aggregate: Array, penalty: float) -> float:
        """f, read off a token."""

    def gradient(self, aggregate: Array) -> Array:
        """The derivative of the loss in the aggregate."""

    def hessian_product(self, aggregate: Array, v: Array) -> Array:
        """The second derivative of the loss in the aggregate, times v."""


class ClientModel(Protocol):
    """The representation model h_k of one client, with its data. It holds no parameters: they pass through."""

    def initial(self) -> Array:
        """theta_k at the start."""

    def represent(self, theta: Array, rows: Rows | None = None) -> Array:
        """h_k(theta_k), on all samples or on these rows."""

    def penalty(self, theta: Array) -> float:
        """The regulariser r(theta_k)."""

    def nonsmooth_penalty(self, theta: Array) -> float:
        """The part of r that is not smooth: l1 times the sum of absolute values."""

    def penalty_product(self, a: Array, b: Array) -> float:
        """The inner product behind the smooth part of r, which is half that of theta with itself."""

    @property
    def fit(self) -> Fit:
        """The loss with the labels: every client knows them."""

    @property
    def smoothness(self) -> float:
        """L_k."""

    def survey(self) -> Array:
        """What the home client of adaptive tours wants to know of the columns: see ``methods/survey.py``."""

    def local_update(self, theta: Array, aggregate: Array, rows: Rows | None, Q: int, eta: float) -> Array:
        """Q local updates of theta_k; the aggregate is kept true in place."""


class Problem(Protocol):
    """All the clients' models, as a method sees them."""

    @property
    def samples(self) -> int:
        """N."""

    @property
    def outputs(self) -> int:
        """Numbers per sample in a representation."""

    def client(self, k: int) -> ClientModel:
        """Client k's model."""

    @property
    def fit(self) -> Fit:
        """The loss with the labels: the server knows them."""

    @property
    def nonsmooth(self) -> bool:
        """Whether r has a part that is not smooth."""


Tensor: TypeAlias = Any
"""Of PyTorch, which the protocol knows nothing of: it passes them on."""
State: TypeAlias = Mapping[str, Tensor]
"""A copy theta_k(gamma) of a network: its parameters, what its optimiser remembers, what it put into the token."""


class Visit(NamedTuple):
    """What a token's visit asks of a client: Q ``local_updates`` of this ``stepsize`` on the batch of iteration t.

    ``hop`` tells the visits of a full batch apart; it is None where the batch changes with t, so that all visits in it
    see the same. ``fuses``: theta_0 is updated too. ``settles``: no upload follows, so this is where running statistics
    take the batch in.
    """

    t: int
    hop: int | None
    local_updates: int
    stepsize: float
    fuses: bool = False
    settles: bool = False

    @property
    def draw(self) -> tuple[int, ...]:
        """What dropout depends on: one draw for each batch, or for each visit of the full batch."""
        return (self.t,) if self.hop is None else (self.t, self.hop)


class Seen(NamedTuple):
    """What shows, at a moment of the training, whether it diverges: the mean loss of the batches of the last epoch, and
    what it was at the start. It takes Z = (H, theta_0) and the labels only, so one party of a federation sees it.
    """

    start: float
    loss: float


class ClientNetwork(Protocol):
    """The representation network of one client, with its data and parameters."""

    def represent(self, t: int) -> Tensor:
        """h_k on the batch of iteration t: what the client puts into the aggregate."""

    def join(self, H: Tensor, t: int) -> Tensor:
        """H with h_k on the batch of iteration t added, unless it is in there already."""

    def local_update(self, H: Tensor, theta_0: Sequence[Tensor], visit: Visit) -> Tensor:
        """Local updates of theta_k, and of theta_0 in place where the visit asks for it; returns H, kept true."""

    def state(self) -> State:
        """The copy that the network holds."""

    def load(self, state: State) -> None:
        """Hold this copy."""

    def memory(self) -> State:
        """All that the network must not forget: that copy, running statistics, what it knows of theta_0."""

    def remember(self, memory: State) -> None:
        """Go on from such a memory."""

    def weights(self) -> State:
        """Parameters and statistics, to measure with: the network's own tensors, not copies."""

    def mixed(self, start: State, copies: Sequence[State], weight: float) -> State:
        """start + weight * sum of (copy - start)."""


class FusionNetwork(Protocol):
    """theta_0, where there is a server to hold it."""

    @property
    def size(self) -> int:
        """Numbers in theta_0."""

    def values(self) -> Sequence[Tensor]:
        """theta_0 as of now, to go with a token."""

    def weights(self) -> State:
        """Parameters and statistics, to measure with: the network's own tensors, not copies."""

    def memory(self) -> State:
        """All that the network must not forget."""

    def remember(self, memory: State) -> None:
        """Go on from such a memory."""

    def local_update(self, H: Tensor, t: int, steps: int, eta: float) -> Tensor:
        """Steps of theta_0 on this aggregate of iteration t; returns the loss before the first."""

    def loss(self, H: Tensor, theta_0: Sequence[Tensor], t: int) -> Tensor:
        """The loss of this aggregate and theta_0 on the batch of iteration t. Nothing changes."""

    def blank_loss(self) -> float:
        """The loss on all samples if all representations were 0."""


class SplitStage(Protocol):
    """The networks of all parties, ready to train on batches that are agreed on."""

    seen: Callable[[], Seen | None]
    """What the party that has last told of a moment sees there; None where an epoch is not complete."""

    @property
    def clients(self) -> Sequence[ClientNetwork]:
        """In order."""

    @property
    def fusion(self) -> FusionNetwork:
        """theta_0."""

    def aggregate(self, representations: Sequence[Tensor]) -> Tensor:
        """H, of all clients in order."""

    def nothing(self) -> Tensor:
        """H before any client has put anything in."""

    def lane(self, token: int) -> AbstractContextManager[object]:
        """What is done for this token; lanes of different tokens may run at the same time."""

    def join(self) -> None:
        """Wait for all lanes."""


class SplitProblem(Protocol):
    """A split network on data, as a method sees it."""

    @property
    def samples(self) -> int:
        """N."""

    @property
    def outputs(self) -> int:
        """Numbers per sample in the aggregate."""

    @property
    def fusion_keeps_statistics(self) -> bool:
        """Whether theta_0 comes with running statistics, which need a party to hold them."""

    def stage(self, batches: Batches, lanes: int) -> SplitStage:
        """The networks, with their data in these batches; so many ``lanes`` may run at the same time."""
