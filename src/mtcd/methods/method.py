"""The base classes of methods: of all, and of those whose tokens roam. A method holds settings and
makes the parties, which hold the state."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, Literal, TypeVar

from mtcd.core.checks import check_number, check_whole
from mtcd.core.errors import ConfigError, NetworkError
from mtcd.core.registry import Registry
from mtcd.methods.conditions import NO_CONDITIONS, Conditions
from mtcd.methods.messages import Messages
from mtcd.methods.mtcd.stepsizes import Schedule
from mtcd.methods.prices import Prices, Timeline
from mtcd.methods.server_sum import PLAIN_SUM, ServerSum
from mtcd.network.topology import Network
from mtcd.protocol.model import Problem
from mtcd.protocol.party import Parties, Party
from mtcd.protocol.transports.transport import DEFAULT, TRANSPORTS
from mtcd.theory.stepsize import Smoothness, StepsizeRules

if TYPE_CHECKING:
    from mtcd.methods.mtcd.plan import Plan


Stepsize = float | Literal["auto"]
P = TypeVar("P", bound=Party)


class Method(ABC):
    """A training method. Subclasses are frozen dataclasses of settings."""

    stepsize: Stepsize | None
    """None if the method has no step size."""
    local_updates: int
    batch: int | None
    schedule: Schedule | None = None
    has_server = True
    """Whether the parties sync at a server."""
    transport: str = DEFAULT
    """The form in which aggregates travel, see ``mtcd.protocol.transports``."""
    aggregation: ServerSum = PLAIN_SUM
    """How the server gets the sum of what clients upload. A method that declares ``Parties.summed``
    has a field of this name."""
    sums_uploads = False
    """Whether the server only sums what clients upload."""
    warm_starts = False
    """Whether training may start from parameters other than 0."""
    gradient_steps = True
    """Whether clients take gradient steps of their own, which 2/L_k limits."""
    conditions: Conditions = NO_CONDITIONS
    """What a mode of privacy asks of a training: its end, its account, its notes."""
    acceleration: str | None = None
    """How tours, rounds or syncs are combined with earlier ones; None if they are not."""
    loss_at_server = ""
    """The setting by which the server computes the loss, and so needs the labels; empty where it
    does not."""
    hides_objective = False
    """Whether aggregates that are received do not tell f, although they are of all samples."""
    chooses_steps = False
    """Whether the method chooses step sizes and numbers of local updates during training."""
    steps = "each step is the best one in the plane of gradient and last direction"
    """How a method without a step size makes its steps."""

    @property
    @abstractmethod
    def kind(self) -> str:
        """Its name in configs and tables."""

    @abstractmethod
    def with_stepsize(self, stepsize: float) -> Method:
        """The same method with this step size; one that chooses its own starts from it."""

    def timeline(self) -> Timeline:
        """How its iterations add up to syncs and epochs."""
        return Timeline(self.batch)

    @abstractmethod
    def parties(self, problem: Problem, network: Network, seed: int) -> Parties:
        """The parties of this method on this problem and network, ready to start."""

    def messages(self, network: Network, seed: int, samples: int, outputs: int = 1) -> Messages:
        """The sizes of its messages, and what a party may receive, as :class:`Messages` has it.

        Parameters
        ----------
        network, seed
            The network, and the seed of the run.
        samples
            The number of training samples.
        outputs
            Numbers per sample in an aggregate: one, or as many as there are classes.
        """
        return Messages(self, network, seed, samples, outputs)

    def check(self, network: Network, problem: Problem | None = None) -> None:
        """Reject a network, or a problem, on which the method cannot train.

        Parameters
        ----------
        network
            The network.
        problem
            The problem; None before there is data.

        Raises
        ------
        ConfigError, NetworkError
            With what to change.
        """
        # A client that is away cannot represent the next batch, and Z^t would lack it.
        if network.changes and self.batch is not None:
            raise ConfigError(
                f"network.changes: with method.batch {self.kind} needs every client in every "
                f"iteration, for its "
                "representation on the next batch. Leave batch out, or the changes."
            )
        self.aggregation.check_network(self, network)

    def notes(self, network: Network) -> tuple[str, ...]:
        """Notes for the user on the method on this network."""
        return self.aggregation.notes(network)

    @abstractmethod
    def describe(self) -> str:
        """The settings in a few words, for legends and tables."""

    @abstractmethod
    def stepsize_rules(self, smoothness: Smoothness) -> StepsizeRules:
        """The step sizes that are known for a problem with these constants.

        Raises
        ------
        ConfigError
            If the method has no step size.
        """

    @abstractmethod
    def prices(self, network: Network, tokens: int = 1) -> Prices:
        """The messages of an iteration, as the paper charges them.

        Parameters
        ----------
        network
            The network.
        tokens
            Gamma, of a method with tokens.
        """

    def _check_local_settings(self) -> None:
        if isinstance(self.stepsize, str) and self.stepsize != "auto":
            raise ConfigError(
                f"method.stepsize must be a number or 'auto', but is {self.stepsize!r}."
            )
        if self.stepsize != "auto":
            # `check_number` refuses NaN too, which would make every comparison below false.
            check_number("method.stepsize", self.stepsize, above=0)
        check_whole("method.local_updates", self.local_updates)
        if self.batch is not None:
            check_whole("method.batch", self.batch)
        transport = TRANSPORTS[self.transport]  # refuses an unknown name
        # Without acceleration messages are sent anew when a party is down, or come another way.
        if transport.keeps_differences and getattr(self, "acceleration", None) is None:
            raise ConfigError(
                f"method.transport: {self.transport} is for methods with acceleration: "
                "leave it out, for tokens in double precision."
            )
        if self.schedule is not None and not isinstance(self.schedule, Schedule):
            raise ConfigError(f"method.schedule must be a Schedule(...), but is {self.schedule!r}.")


METHODS: Registry[Callable[..., Method]] = Registry(
    Method, "mtcd.methods", "mtcd.methods", "method.kind: no method is called '{}';", functions=True
)
"""The class of each method, or a function that returns an instance. Its parameters are the keys of
``method`` in a config, except fields of a dataclass that are ``NOT_IN_CONFIG``."""
NOT_IN_CONFIG = {"config": False}


def check_connected(network: Network, kind: str) -> None:
    """Reject a disconnected network for a method without a server."""
    if not network.connected:
        apart = network.components[1][0]
        raise NetworkError(
            f"{kind} needs a connected network, but this one is in {len(network.components)} "
            f"pieces "
            f"(client {network.clients[apart]!r} cannot be reached from {network.clients[0]!r}). "
            "Add links, or use mtcd with a server: it works on any network."
        )


def resolved_stepsize(method: Method) -> float:
    """The step size as a number; 'auto' must be resolved before.

    Raises
    ------
    ConfigError
        If it is not a number yet, or if the method has none.
    """
    if method.stepsize is None:
        raise ConfigError(f"{method.kind} has no step size.")

    # 'auto' needs the smoothness of a problem, which a method alone does not have.
    if isinstance(method.stepsize, str):
        raise ConfigError(
            "stepsize 'auto' is resolved by mtcd.train: give a number to use the method by itself."
        )
    return method.stepsize


def resolve_stepsize(method: Method, smoothness: Smoothness) -> tuple[Method, tuple[str, ...]]:
    """The method with 'auto' replaced by a number, and a note with that number."""
    if method.stepsize != "auto":
        return method, ()
    rule = method.stepsize_rules(smoothness).auto
    return method.with_stepsize(rule.value), (
        f"stepsize auto: {rule.value:.4g}, which is {rule.reason}.",
    )


TokenClusters = tuple[tuple[int, ...], ...] | None
"""The clients of each token; None where tokens roam everywhere."""


class TokenMethod(Method):
    """A method that is a plan of tokens which roam, so that a kind of model may bring parties of
    its own for it."""

    def token_clusters(self, network: Network, seed: int) -> TokenClusters:
        """The cluster of each token; None where tokens roam everywhere."""
        return None

    @abstractmethod
    def plan(self, samples: int, outputs: int, network: Network, seed: int) -> Plan:
        """The settings, resolved for a problem and a network."""


def token_clusters(method: Method, network: Network, seed: int) -> TokenClusters:
    """The cluster of each token of any method; None where tokens roam everywhere, or there are
    none."""
    if not isinstance(method, TokenMethod):
        return None
    return method.token_clusters(network, seed)
