"""Neural networks: a party's columns, standardised, through fully connected layers to margins.
Needs PyTorch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy  # its parts are loaded when they are used

from mtcd.core.arrays import Array, Rows
from mtcd.core.checks import check_number, check_whole
from mtcd.core.errors import ConfigError, MtcdError
from mtcd.core.optional import find
from mtcd.core.seeding import stream
from mtcd.data.vertical import Block
from mtcd.models.trees.families.family import FAMILIES, Arrays, Family, Inputs, NoSmoothness, Scale
from mtcd.protocol.model import LocalUpdates

STEPS = 5  # iterations of L-BFGS for each local update


@FAMILIES.register("net")
@dataclass(frozen=True, kw_only=True)
class NetFamily(Family):
    """A network with layers of ``hidden`` units on the standardised columns.

    The penalty l2/2 * |theta - theta^0|^2 is on the change since the start: random initial layers
    are not drawn towards 0, and the penalty of the first token is 0.
    """

    hidden: tuple[int, ...] = (16,)
    l2: float = 1e-3

    kind = "net"

    def __post_init__(self) -> None:
        if not isinstance(self.hidden, Sequence) or isinstance(self.hidden, str):
            raise ConfigError(
                f"model.hidden must be a list of widths, such as [16], but is {self.hidden!r}."
            )
        for width in self.hidden:
            check_whole("model.hidden", width)
        object.__setattr__(self, "hidden", tuple(self.hidden))  # configs give a list
        check_number("model.l2", self.l2)

    def client(self, inputs: Inputs) -> NetParty:
        return NetParty(self, inputs)

    def part(self, arrays: Arrays) -> NetPart:
        scale = Scale.from_arrays(arrays)
        hidden = tuple(int(width) for width in arrays["hidden"])
        theta = np.asarray(arrays["theta"], dtype=float)
        return NetPart(scale, hidden, int(arrays["outputs"]), theta)


@dataclass(frozen=True, eq=False)
class NetPart:
    """A trained network, with the scaling of its columns."""

    scale: Scale
    hidden: tuple[int, ...]
    outputs: int
    theta: Array

    def margins(self, X: Block) -> Array:
        """The outputs of the network."""
        net = find("mtcd.models.trees.families.margin_net").MarginNet(
            len(self.scale.means), self.hidden, self.outputs
        )
        if net.size != self.theta.size:
            raise MtcdError(f"This net has {net.size} parameters, but {self.theta.size} are given.")
        found: Array = net.outputs(self.theta, self.scale.apply(X))
        return found

    def arrays(self) -> Arrays:
        """The parameters, the widths of the layers, and the means and deviations of the columns."""
        sizes = {"hidden": np.array(self.hidden, dtype=int), "outputs": np.array(self.outputs)}
        return {**self.scale.arrays(), **sizes, "theta": self.theta}


class NetParty(NoSmoothness):
    """The network of one party. Its local updates are iterations of L-BFGS, whose line search never
    raises f."""

    def __init__(self, family: NetFamily, inputs: Inputs) -> None:
        self.family = family
        self.inputs = inputs
        self.fit = inputs.fit
        self.scale = Scale.of(inputs.X, inputs.weights)
        self.X = self.scale.apply(inputs.X)
        self._net: Any = find("mtcd.models.trees.families.margin_net").MarginNet(
            self.X.shape[1], family.hidden, inputs.outputs
        )

        # Of the training's seed and the client: in a federation each party draws its own network.
        draw = int(stream(inputs.seed, "net", inputs.number).integers(2**31 - 1))
        self._start: Array = self._net.initial(draw)

    def initial(self) -> Array:
        """Random layers, except the last, which is 0, so that all margins are 0."""
        return self._start.copy()

    def represent(self, theta: Array, rows: Rows | None = None) -> Array:
        """The margins of all samples, or of these rows."""
        X = self.X if rows is None else self.X[rows]
        found: Array = self._net.outputs(theta, X)
        return found

    def margins(self, theta: Array, X: Block) -> Array:
        """The margins of other samples."""
        return self.finish(theta).margins(X)

    def finish(self, theta: Array) -> NetPart:
        """The trained network with the scaling of its columns."""
        return NetPart(self.scale, self.family.hidden, self.inputs.outputs, theta)

    def penalty(self, theta: Array) -> float:
        """l2/2 * |theta - theta^0|^2, which is 0 at the start, as the first token says."""
        change = theta - self._start
        return 0.5 * self.family.l2 * float(change @ change)

    def penalty_product(self, a: Array, b: Array) -> float:
        """The inner product l2 * a.b of two changes of theta."""
        return self.family.l2 * float(a @ b)

    def local_update(self, theta: Array, aggregate: Array, updates: LocalUpdates) -> Array:
        """Q local updates of ``STEPS`` iterations each; theta itself if they do not lower f."""
        # The visit moves theta_k alone: what the others contribute stays as it came.
        others = aggregate - self.represent(theta)

        def objective(given: Array) -> tuple[float, Array]:
            margins, pullback = self._net.pullback(given, self.X)
            z = others + margins
            value = self.fit.objective(z, self.penalty(given))
            gradient = pullback(self.fit.gradient(z)) + self.family.l2 * (given - self._start)
            return value, gradient

        before, _ = objective(theta)
        # Other families cannot take fixed steps: without a bound of the curvature no size is safe.
        found = scipy.optimize.minimize(
            objective, theta, jac=True, method="L-BFGS-B", options={"maxiter": STEPS * updates.Q}
        )
        if not found.fun < before:  # also if it is NaN
            return theta
        # In place: the token is the aggregate.
        aggregate[...] = others + self.represent(found.x)
        return np.asarray(found.x)
