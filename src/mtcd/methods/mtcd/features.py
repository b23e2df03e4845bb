"""The interfaces by which a feature joins a method of tokens. The core knows no feature by name.

A feature that only adds something to tokens and to visits is a :class:`TokenFeature`; several may
be combined. One that changes what the parties do makes its own parties: :class:`Roles`, one per
run. An :class:`AccelerationKind` makes them for ``method.acceleration``, a rule of ``combine/`` for
``method.combine``. A run without features has an empty tuple and the plain roles, so that a visit
does not pay for what is off.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from mtcd.core.registry import Registry
from mtcd.network.topology import Network
from mtcd.protocol.codec.extensions import Extension
from mtcd.protocol.codec.limits import Bounds
from mtcd.protocol.model import ClientModel, LocalUpdates, Problem, Theta
from mtcd.protocol.token import Token
from mtcd.theory.stepsize import Smoothness, StepsizeRule

if TYPE_CHECKING:
    from mtcd.methods.mtcd.client import TokenClient
    from mtcd.methods.mtcd.mtcd import MTCD
    from mtcd.methods.mtcd.plan import Plan
    from mtcd.methods.mtcd.roaming import Roaming
    from mtcd.methods.mtcd.server import TokenServer
    from mtcd.methods.planned import PlanSetting

Update = Callable[[Theta, Token, LocalUpdates], Theta]
"""The local updates of a visit: (theta_k, token, updates) -> the new theta_k. The aggregate is
updated in place."""


Clusters = Sequence[Sequence[int]] | None
"""The clients of each token; None where tokens roam everywhere."""


class TokenFeature(Protocol):
    """Something that every token of a run carries beside its aggregate, and what a visit does with
    it."""

    @property
    def floats(self) -> int:
        """The numbers that it adds to a token, which the ledger counts."""

    @property
    def extension(self) -> Extension:
        """The slot of the token in which it travels."""

    @property
    def limits(self) -> Mapping[str, int]:
        """The limits of its wire fields by name (``Bounds.limits``)."""

    def first_value(self, endless: bool) -> Any:
        """What a new token carries, an object of its own; ``endless``: there are no syncs."""

    def around(self, client: int, update: Update) -> Update:
        """The update of this client, with what the feature does before and after it. Asked once,
        not per visit."""


# Methods and features meet here: a method knows these interfaces, a feature implements them, and
# neither imports the other.
class Roles:
    """Makes the parties of a run: the plain ones, unless a feature has its own."""

    gather: Callable[[Any, Any], list[Any]] | None = None
    """Computes the model from the clients and the server, if the clients alone do not have it."""

    def check(self, problem: Problem) -> None:
        """Reject a problem that these parties cannot solve."""

    def bounds(self, bounds: Bounds, plan: Plan) -> Bounds:
        """The bounds of the messages, with those of its own fields."""
        return bounds

    def client(self, number: int, model: ClientModel, plan: Plan) -> TokenClient:
        """The party of client k, on its own block."""
        from mtcd.methods.mtcd.client import TokenClient  # which imports this module

        return TokenClient(number, model, plan)

    def server(self, clients: int, plan: Plan, problem: Problem) -> TokenServer:
        """The party that syncs the tokens; asked for only where there is a server."""
        from mtcd.methods.mtcd.server import TokenServer  # which imports this module

        return TokenServer(clients, plan, problem)


PLAIN_ROLES = Roles()


class AccelerationKind(ABC):
    """What a name in ``method.acceleration`` stands for: what the settings, configs and the planner
    ask before there are parties. The built-in ones derive from it in ``methods/tours``."""

    uses_depth = True
    """Whether ``method.depth`` has an effect."""
    adapts = False
    """Whether it chooses step sizes and numbers of local updates if ``method.stepsize`` is auto."""
    sums_suffice = False
    """Whether the sum of all tokens is enough at the sync, so that it may be masked: a server needs
    no other numbers, and no more digits than masks leave."""
    planned: ClassVar[frozenset[str]] = frozenset()
    """The objectives for which ``mtcd plan`` tries it: smooth, nonsmooth, or both."""

    @classmethod
    def tried(cls, name: str, method: MTCD, setting: PlanSetting) -> Iterator[MTCD]:
        """The settings with which ``mtcd plan`` tries it: see ``planned``.

        Parameters
        ----------
        name
            Its name in ``method.acceleration``.
        method
            A method without it, with tokens, walk and clusters, and one step at a visit.
        setting
            The problem and the network.

        Returns
        -------
        iterator of MTCD
            Step sizes are numbers.
        """
        from mtcd.methods.mtcd.planned import steps_of_tours  # which imports this module

        return steps_of_tours(name, method, setting)

    @classmethod
    @abstractmethod
    def check_settings(cls, method: MTCD) -> None:
        """Reject settings that do not fit it."""

    @classmethod
    @abstractmethod
    def most_starts(cls, method: MTCD) -> int:
        """M, the most tours or syncs that are combined."""

    @classmethod
    @abstractmethod
    def first_stepsize(cls, smoothness: Smoothness) -> StepsizeRule:
        """The step size from which it starts, if it adapts."""

    @classmethod
    @abstractmethod
    def roaming(
        cls, method: MTCD, network: Network, tokens: int, clusters: Clusters, seed: int
    ) -> Roaming:
        """Where the tokens go."""

    @classmethod
    @abstractmethod
    def roles(cls, method: MTCD) -> Roles:
        """The makers of the parties, for these settings."""

    @classmethod
    def chosen(cls, slots: Mapping[str, Any], smoothness: Smoothness) -> str:
        """What a run says of the steps that the acceleration has chosen, from what the token carries
        at the end; empty where it has chosen none."""
        return ""


ACCELERATIONS: Registry[type[AccelerationKind]] = Registry(
    AccelerationKind, "mtcd.accelerations", None, "method.acceleration: nothing is called '{}';"
)
