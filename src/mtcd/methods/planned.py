"""What a method tells the planner of itself: the settings that are worth a try, and where its
messages go.

A method that declares nothing can be planned all the same, where the config names it: the planner
then changes its number of local updates and its step size.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import cast

from mtcd.core import features
from mtcd.core.errors import ConfigError
from mtcd.methods.method import Method, resolved_stepsize
from mtcd.network.topology import Network
from mtcd.protocol.transports.transport import TRANSPORTS
from mtcd.theory.stepsize import Smoothness

CANDIDATES = "mtcd.plan_candidates"
"""The group in which a feature names the :class:`Planned` of its classes of methods."""

LOCAL_UPDATES, MOST_UPDATES = (5, 20, 100), 200
# Parts of 1/L for all clients at once: the theorems' limit, the safe one, nearly the largest.
TOGETHER = (0.5, 1.0, 1.8)
# With mini-batches, smaller ones too: the noise that remains grows with the step size.
NOISY = (0.05, 0.2, 0.5, 1.0)


@dataclass(frozen=True)
class Leg:
    """A message that is sent as soon as others have arrived.

    Parameters
    ----------
    link
        Its sender and receiver: clients are 0..K-1, the server is K.
    floats
        Its size.
    after
        The positions, in the sequence of all legs, of those that it waits for.
    repeats
        How often it is sent, one after the other: 2.5 takes 2.5 times as long.
    """

    link: tuple[int, int]
    floats: int
    after: tuple[int, ...] = ()
    repeats: float = 1.0


@dataclass(frozen=True, eq=False)
class PlanSetting:
    """The setting for which settings of a method are proposed.

    Step sizes come from the smoothness of the problem. Where one client moves at a time,
    1/max_k L_k is safe. Where many move at once they may all correct the same error: there the
    steps of a visit, Q of them, add up to a part of 1/L.

    Parameters
    ----------
    network
        The network.
    smoothness
        L and L_k of the problem.
    own
        The method of the config, with a number as its step size.
    outputs
        Numbers per sample in an aggregate.
    seed
        The seed of the config.
    server
        Whether there is a server.
    """

    network: Network
    smoothness: Smoothness
    own: Method
    outputs: int
    seed: int
    server: bool = True
    bytes_count: bool = False
    """Whether the size of a message in bytes makes a difference."""

    @property
    def nonsmooth(self) -> bool:
        """Whether the penalty has a part that is not smooth: l1."""
        return bool(self.smoothness.problem.nonsmooth)

    @property
    def quadratic(self) -> bool:
        """Whether f is its own quadratic upper bound."""
        return bool(self.smoothness.problem.loss.quadratic)

    @property
    def batch(self) -> int | None:
        """The batch size of the config, for all methods that support mini-batches."""
        return self.own.batch

    @cached_property
    def local_updates(self) -> list[int]:
        """Q: what the config has, unless a visit would take too long for a pilot, and others."""
        return sorted({min(self.own.local_updates, MOST_UPDATES), *LOCAL_UPDATES})

    @cached_property
    def alone(self) -> float:
        """1/max_k L_k, the step size with which one client at a time never raises f."""
        # A long visit would take up the whole budget of a pilot.
        largest = float(self.smoothness.blocks.max())
        if self.batch is not None:
            # A mini-batch is more curved than all samples together.
            largest = max(largest, self.smoothness.batch(self.batch))
        return 1.0 / largest

    @property
    def parts_together(self) -> Sequence[float]:
        """The parts of 1/L to try for all clients at once."""
        return TOGETHER if self.batch is None else NOISY

    @property
    def parts_alone(self) -> Sequence[float]:
        """The parts of ``alone`` to try where one client moves at a time."""
        return (1.0,) if self.batch is None else NOISY

    def together(self, part: float, Q: int) -> float:
        """A step size for all clients at once: Q steps are this part of 1/L."""
        # 1.8/max_k L_k at most: at 2/L_k a client alone diverges.
        return min(part / (self.smoothness.batch(self.batch) * Q), 1.8 * self.alone)


class Planned:
    """What the planner asks about a class of methods. An instance has no state.

    A feature derives from it, and names an instance in ``mtcd.plan_candidates`` by the class of
    the method. These are the answers for a method of which nothing is declared.

    Examples
    --------
    >>> from mtcd import DCPA
    >>> planned(DCPA()).replaceable
    True
    """

    replaceable = True
    """Whether other methods keep what the config asks for. False for those of a mode of privacy:
    any other method would promise less."""

    def candidates(self, setting: PlanSetting) -> Iterator[Method]:
        """Methods that are worth a pilot; step sizes are numbers.

        Parameters
        ----------
        setting
            The problem, the network and the config's own method.

        Returns
        -------
        iterator of Method
            None where the method cannot work there.
        """
        return iter(())

    def changed(self, setting: PlanSetting, method: Method) -> Iterator[Method]:
        """The same method with one setting changed a little: for a search around a good one."""
        if method.stepsize is None:
            return
        if setting.bytes_count and any(one.name == "transport" for one in fields(method)):  # type: ignore[arg-type]
            yield from other_transports(method)

        if any(one.name == "local_updates" for one in fields(method)):  # type: ignore[arg-type]
            for factor in (2.0, 0.5):
                Q = max(1, round(method.local_updates * factor))
                if method.local_updates != Q:
                    yield replace(method, local_updates=Q)  # type: ignore[type-var]

        for factor in (1.5, 1 / 1.5, 4.0, 1 / 4):
            step = resolved_stepsize(method) * factor
            # At 2/L_k the steps of a client alone diverge.
            if not method.gradient_steps or step < 2.0 * setting.alone:
                yield method.with_stepsize(step)

    def messages(self, method: Method, network: Network, floats: int) -> list[Leg]:
        """The messages of an iteration, which have this many floats.

        With a server, to every client and back; without one all neighbours talk at once.
        """
        if method.has_server:
            return server_round(network.size, floats, floats)

        return [Leg((k, j), floats) for k, near in enumerate(network.neighbours) for j in near]

    def crossings(
        self, method: Method, network: Network, machine_of: Sequence[int]
    ) -> tuple[float, float]:
        """Messages between machines on the critical path of an iteration, but for those of a
        server.

        Parameters
        ----------
        method
            The method.
        network
            The network.
        machine_of
            The machine of each client.

        Returns
        -------
        tuple of float
            How often an iteration waits for one, and how many it sends.
        """
        if method.has_server:
            return 0.0, 0.0  # all goes over the server's link

        # All neighbours send at once: the machine with most links to others decides.
        cut = [0] * (max(machine_of) + 1)
        # Both ends count: a machine sends and receives over one link.
        for k, near in enumerate(network.neighbours):
            cut[machine_of[k]] += sum(machine_of[k] != machine_of[j] for j in near)
        return float(max(cut) > 0), float(max(cut))


def other_transports(method: Method) -> Iterator[Method]:
    """The same method, with its tokens in every other form that it may have."""
    for name, transport in TRANSPORTS.usable().items():
        if not transport.planned or name == method.transport:
            continue
        with suppress(ConfigError):  # not with this acceleration or rule
            yield replace(method, transport=name)  # type: ignore[type-var]


UNDECLARED = Planned()


def planned(method: Method) -> Planned:
    """What the planner is told of a method, by the first of its classes that declares it."""
    found = features.of_class(CANDIDATES, type(method))
    return UNDECLARED if found is None else cast(Planned, found)


def server_round(clients: int, down: int, up: int) -> list[Leg]:
    """To every client at once, and from each back as soon as it has received all."""
    legs = [Leg((clients, k), down) for k in range(clients)]
    legs += [Leg((k, clients), up, after=(k,)) for k in range(clients)]
    return legs
