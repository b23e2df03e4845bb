"""The parties of twin tours."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mtcd.core.arrays import Array
from mtcd.core.errors import ConfigError, MtcdError
from mtcd.methods.mtcd.client import TokenClient
from mtcd.methods.mtcd.features import Roles
from mtcd.methods.mtcd.plan import Plan
from mtcd.methods.tours.instruction import SURVEYED
from mtcd.methods.tours.parties import steps_of
from mtcd.methods.tours.twin.home import Home, Tour
from mtcd.methods.tours.twin.slots import (
    ORDER,
    PRODUCTS,
    SECOND,
    Order,
    give,
    order_of,
    products_of,
    second_of,
)
from mtcd.protocol.codec.limits import Bounds
from mtcd.protocol.model import ClientModel, LocalUpdates, Problem, Theta
from mtcd.protocol.party import Message
from mtcd.protocol.token import Token

SAMPLES_EACH = 4
"""So many samples, at least, for each direction that is kept."""


@dataclass(frozen=True)
class TwinRoles(Roles):
    """Makes the parties. ``depth``: the most directions that are kept."""

    depth: int

    def check(self, problem: Problem) -> None:
        """Reject a penalty that is not smooth."""
        if problem.nonsmooth:
            raise ConfigError(
                "method.acceleration: twin needs a smooth penalty: use momentum with l1."
            )

    def most(self, plan: Plan) -> int:
        """The most directions that are kept in a run: few, if there are few samples."""
        return min(self.depth, max(2, plan.batches.length // SAMPLES_EACH))

    def bounds(self, bounds: Bounds, plan: Plan) -> Bounds:
        """The weights and inner products that an order may have."""
        most = self.most(plan)
        limits = {"twin directions": most + 2, "twin products": 3 * most + 5 + SURVEYED}
        return bounds.with_slots(ORDER.name, SECOND.name, PRODUCTS.name, **limits)

    def client(self, number: int, model: ClientModel, plan: Plan) -> TwinClient:
        """The party of client k."""
        return TwinClient(number, model, plan, self.most(plan))


class TwinClient(TokenClient):
    """A client with two copies of theta_k, one solved and one of short steps, and the directions of
    the last tours.

    ``theta_k(gamma)``, the copy that goes with the token, is the solved one. After a mix the token
    equals the aggregate of the models that the clients will hold after their next visit, so
    progress is reported only when it has visited all clients of its tour.
    """

    state_fields = (*TokenClient.state_fields, "tour", "start", "short", "directions", "home")

    def __init__(self, number: int, model: ClientModel, plan: Plan, depth: int) -> None:
        super().__init__(number, model, plan)
        self.depth = depth
        self.most_steps = model.most_steps(majorise=True)
        self.tour = 0
        self.start: Theta = self.theta[0]
        """theta_k at the start of the tour."""
        self.short: Theta = self.start
        """The copy of short steps, where there are two."""
        self.directions: list[Array] = []
        """Those of the last tours, and behind its last visit of this one; the oldest first."""
        self.home: Home | None = None
        """Set at the home client."""

    def restore(self, state: dict[str, Any]) -> None:
        if state["home"] is not None:
            z = self.plan.batches.zeros(self.plan.outputs)
            self.home = Home(self.depth, z, self.model.fit, 0, 0.0)
        super().restore(state)

    def receive(self, message: Message) -> Sequence[Message]:
        token, roaming = message.payload, self.plan.roaming
        assert isinstance(token, Token)
        if roaming.ends_tour(token.hop):
            if not roaming.begins_view(token.hop):
                self.finish(token)  # the last visit of the tour that ends here
            self.start_tour(token)

        updates = 0
        if order_of(token).tour != self.tour:
            self.begin(token)
            updates = 1
        if roaming.is_last_visit(token.index, token.t, token.hop, self.number):
            self.update(token, updates + 1)
            self.report_directions(token)
        elif updates:
            self.update(token, updates)
        return self.pass_on(token)

    def finish(self, token: Token) -> None:
        """The home client's last visit of a tour."""
        self.update(token, 1)
        self.report_directions(token)

    def start_tour(self, token: Token) -> None:
        """At the home client: the order of the next tour, and the token from which it starts."""
        if self.plan.roaming.begins_view(token.hop):
            order = token.slots.get(ORDER.name)
            tour = 1 if order is None else order.tour + 1
            first = self.plan.stepsize
            self.home = Home(self.depth, token.aggregate, self.model.fit, tour, first)
            give(token, self.home.opening())
            return

        assert self.home is not None
        ends: tuple[Array, ...] = (token.aggregate,)
        if order_of(token).solves:
            ends = (token.aggregate, second_of(token))
        order, z = self.home.end_tour(Tour(ends, products_of(token)))
        token.aggregate = z
        give(token, order)

    def begin(self, token: Token) -> None:
        """At the first visit of a tour: theta_k moves by the weights of the order. The aggregate
        includes that already."""
        order = order_of(token)
        old = self.copies.get(token.index, self.theta)
        start = self.start_of(order, old[0])
        new = start, self.model.penalty(start)
        token.penalty += new[1] - old[1]
        token.sync_penalty += new[1] - old[1]

        self.copies[token.index] = self.combined = new
        self.directions = self.directions[len(self.directions) - order.keep :]
        self.start = self.short = start
        self.tour = order.tour
        if order.survey:
            products_of(token)[-SURVEYED:] += self.model.survey()

    def start_of(self, order: Order, theta: Theta) -> Theta:
        """theta_k at the start of a tour; ``theta`` is the copy that went with the last one."""
        if not order.weights:  # a first tour starts where the one before ended
            return theta
        if len(order.weights) != len(self.directions):
            raise MtcdError(
                "The token's weights are not one for each direction that this client has kept: "
                "its state is of another moment than the token. Start the training anew."
            )
        start = np.array(self.start)
        for weight, direction in zip(order.weights, self.directions, strict=True):
            if weight:
                start += weight * direction
        return start

    def update(self, token: Token, times: int) -> None:
        """``times`` updates of each copy, and of its aggregate."""
        order = order_of(token)
        Q, eta = steps_of(order.reach, self.model.smoothness, self.most_steps)
        short, solved = LocalUpdates(Q, eta, majorise=True), LocalUpdates(1, 0.0, newton=True)
        for _ in range(times):
            if order.solves:
                self.short = self.model.local_update(self.short, second_of(token), short)
                self.update_copy(token, solved)
            else:
                self.update_copy(token, short)

    def update_copy(self, token: Token, updates: LocalUpdates) -> None:
        """Update the copy that goes with the token, and what the token says of it."""
        old = self.copies[token.index]
        theta = self.model.local_update(old[0], token.aggregate, updates)
        new = theta, self.model.penalty(theta)
        self.unchanged = theta is old[0]
        token.penalty += new[1] - old[1]
        token.sync_penalty += new[1] - old[1]
        self.copies[token.index] = self.combined = new

    def report_directions(self, token: Token) -> None:
        """At the last visit of a tour: keep its directions, and add their inner products to the
        token."""
        order, products, product = order_of(token), products_of(token), self.model.penalty_product
        new = [self.copies[token.index][0] - self.start]
        if order.solves:
            new.append(self.short - self.start)

        found = [product(self.start, direction) for direction in self.directions]
        for one in new:
            found += [product(one, direction) for direction in self.directions]
        found += [product(self.start, one) for one in new]
        for place, one in enumerate(new):
            found += [product(one, other) for other in new[place:]]
        products[: len(found)] += found
        self.directions = [*self.directions, *new]

    def pass_on(self, token: Token) -> Sequence[Message]:
        messages = super().pass_on(token)
        if self.plan.roaming.has_visited_all(token.hop):
            return messages
        return messages[:1]  # without the progress report

    def copy_for(self, token: Token) -> Theta:
        """The copy for the token, or the one after the next visit."""
        order = token.slots.get(ORDER.name)
        # a client that was absent in the last tour has no part in the mix
        if order is None or order.tour != self.tour + 1:
            return super().copy_for(token)
        return self.start_of(order, super().copy_for(token))
