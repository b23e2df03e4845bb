"""The parties of accelerated tours: extrapolated at home without a server (STCD), at the sync with
one (MTCD)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mtcd.core.arrays import Array
from mtcd.core.errors import ConfigError, MtcdError
from mtcd.methods.mtcd.features import Roles
from mtcd.methods.mtcd.plan import Plan
from mtcd.methods.mtcd.server import TokenClient, TokenServer, WithPenalty
from mtcd.methods.tours.acceleration import Acceleration, Memory
from mtcd.methods.tours.instruction import (
    NO_INSTRUCTION,
    NO_PRODUCTS,
    PRODUCTS,
    SURVEYED,
    TOUR,
    Instruction,
    instruct,
    instruction_of,
    products_of,
)
from mtcd.protocol.codec.limits import Bounds
from mtcd.protocol.model import ClientModel, Fit, Problem, Theta
from mtcd.protocol.party import Message
from mtcd.protocol.token import Token


def steps_of(reach: float, L: float, most: int) -> tuple[int, float]:
    """The number and the size of the steps of an update: they add up to ``reach``, each at most
    1/L; no more than ``most``."""
    Q = max(1, math.ceil(min(reach * L, most)))
    return Q, min(reach / Q, 1.0 / L) if L else reach


@dataclass(frozen=True)
class Tours(Roles):
    """Makes the parties of accelerated tours.

    ``name``: that of the acceleration in configs. ``depth``: the most tours or syncs that are
    combined. ``first``: above 0, the step size of the first tour, from which the acceleration
    chooses those of the others. ``unit``: above 0, the share of a change by which the transport of
    the run is wrong.
    """

    name: str
    acceleration: type[Acceleration]
    depth: int
    first: float = 0.0
    unit: float = 0.0

    def check(self, problem: Problem) -> None:
        """Reject a penalty that is not smooth, where the acceleration needs one that is."""
        if self.acceleration.smooth_only and problem.nonsmooth:
            raise ConfigError(
                f"method.acceleration: {self.name} needs a smooth penalty: use momentum with l1."
            )

    def bounds(self, bounds: Bounds, plan: Plan) -> Bounds:
        """The weights and inner products that an instruction may have."""
        snapshots = self.depth + 1
        most = 2 * snapshots + 1 + SURVEYED
        return bounds.with_slots(TOUR.name, PRODUCTS.name, snapshots=snapshots, products=most)

    def client(self, number: int, model: ClientModel, plan: Plan) -> TouringClient:
        """Client ``number``, which collects products for the acceleration at its visits."""
        return TouringClient(number, model, plan)

    def server(self, clients: int, plan: Plan, problem: Problem) -> TouringServer:
        """The server, at which tours end: it chooses the next step from what the token
        collected."""
        return TouringServer(clients, plan, problem)

    def begin(self, z: Array, penalty: float, fit: Fit, tour: int) -> Acceleration:
        """A new acceleration that starts with this token."""
        begun = self.acceleration(self.depth, z, penalty, fit, tour, self.first)
        if self.unit:
            begun.count_rounding(self.unit)
        return begun


def tours_of(plan: Plan) -> Tours:
    """The settings of the tours of a plan, whose parties these are."""
    assert isinstance(plan.roles, Tours)
    return plan.roles


class TouringClient(TokenClient):
    """A client that stores theta_k at the ends of tours, and combines them by the token's
    instruction.

    After an extrapolation the token equals the aggregate of the models that the clients will hold
    after their next visit. So progress is reported only when the token has visited all clients of
    its tour.
    """

    state_fields = (*TokenClient.state_fields, "memory", "acceleration")

    def __init__(self, number: int, model: ClientModel, plan: Plan) -> None:
        super().__init__(number, model, plan)
        self.most_steps = model.most_steps(plan.majorises)
        self.memory = Memory()
        self.acceleration: Acceleration | None = None
        """Set at the home client, without a server."""

    def restore(self, state: dict[str, Any]) -> None:
        began = state["acceleration"] is not None
        plan = self.plan
        z = plan.batches.zeros(plan.outputs)
        empty = tours_of(plan).begin(z, 0.0, self.model.fit, 0) if began else None
        self.acceleration = empty
        super().restore(state)

    def receive(self, message: Message) -> Sequence[Message]:
        token = message.payload
        assert isinstance(token, Token)
        updates = 1
        if self.plan.hops is None and self.plan.roaming.ends_tour(token.hop):
            ending = instruction_of(token)
            if ending.starts and not self.plan.roaming.begins_view(token.hop):
                self.update(token, ending, 1)  # the last visit of the tour that ends here
            self.start_tour(token)
        instruction = instruction_of(token)
        if instruction.starts:  # one for its first visit of this tour, one for its last
            updates = int(instruction.tour != self.memory.tour) + int(self.is_last_visit(token))
        self.apply_instruction(token, instruction)
        if updates:
            self.update(token, instruction, updates)
        return self.pass_on(token)

    def is_last_visit(self, token: Token) -> bool:
        """Whether this is the token's last visit before the end of the tour, or before the sync."""
        return self.plan.roaming.is_last_visit(token.index, token.t, token.hop, self.number)

    def update(self, token: Token, instruction: Instruction, times: int) -> None:
        """``times`` local updates of the copy theta_k(gamma), with the step size of the
        instruction."""
        if instruction.stepsize:
            Q, eta = steps_of(instruction.stepsize, self.model.smoothness, self.most_steps)
        else:
            Q, eta = self.plan.local_updates, self.plan.stepsize_at(token.t)
        self.visit(token, (times * Q, eta))

    def start_tour(self, token: Token) -> None:
        """At the home client, without a server: compute the instruction of the next tour from the
        last tours."""
        z, penalty, fit = token.aggregate, token.penalty, self.model.fit
        if self.plan.roaming.begins_view(token.hop):
            tour = instruction_of(token).tour + 1
            self.acceleration = tours_of(self.plan).begin(z, penalty, fit, tour)
            instruct(token, self.acceleration.opening())
        else:
            assert self.acceleration is not None
            value = fit.objective(z, penalty)
            instruct(token, self.acceleration.end_tour(z, value, penalty, products_of(token)))

    def apply_instruction(self, token: Token, instruction: Instruction) -> None:
        """Apply the instruction once a tour, before the update. The aggregate includes its effect
        already."""
        if token.t != self.t:
            self.apply_sync(token.t)
        if instruction.tour == self.memory.tour:
            return
        old, old_penalty = self.copies.get(token.index, self.theta)
        new = self.memory.apply(old, instruction)
        if new is not old:
            self.combined = new, self.model.penalty(new)
            if token.index in self.copies:
                self.copies[token.index] = self.combined
            else:  # the start of this iteration, for all tokens
                self.theta = self.combined
            change = self.combined[1] - old_penalty
            token.penalty += change
            token.sync_penalty += change
        if instruction.starts:
            products = products_of(token)
            for place, s in enumerate(self.memory.snapshots):
                products[place] += self.model.penalty_product(new, s)
            if instruction.survey:
                # messages are checked on arrival; a checkpoint of a version whose surveys had
                # other numbers would be read shifted
                if len(products) != instruction.products:
                    raise MtcdError(
                        "This checkpoint was written by another version of mtcd, in the first tour "
                        "of the training, whose statistics were others: train anew, without it."
                    )
                products[-SURVEYED:] += self.model.survey()

    def report_sync_change(self, token: Token, old: WithPenalty, new: WithPenalty) -> None:
        super().report_sync_change(token, old, new)
        self.add_products(token, old[0], new[0])

    def add_products(self, token: Token, old: Array, new: Array) -> None:
        """Update the inner products with the change since the start of the tour, where the
        instruction asks for them."""
        instruction = instruction_of(token)
        if not instruction.starts:
            return

        products, kept = products_of(token), instruction.keep
        product = self.model.penalty_product
        *earlier, start = self.memory.snapshots
        step = new - old
        for place, s in enumerate(earlier, kept):
            products[place] += product(step, s - start)
        products[2 * kept - 1] += product(step, start)
        products[2 * kept] += product(step, (new - start) + (old - start))

    def pass_on(self, token: Token) -> Sequence[Message]:
        messages = super().pass_on(token)
        if self.plan.hops is not None:
            return messages

        whole = self.plan.roaming.has_visited_all(token.hop)
        if not whole or instruction_of(token).trial:
            return messages[:1]  # without the progress report
        return messages

    def copy_for(self, token: Token) -> Theta:
        """The copy for the token, or the one after the next visit if the client was present in the
        last tour."""
        instruction = instruction_of(token)
        if self.memory.tour < instruction.tour - 1:
            return super().copy_for(token)
        return self.memory.preview(super().copy_for(token), instruction)


class TouringServer(TokenServer):
    """A server whose next iteration starts from a combination of the last syncs."""

    state_fields = (*TokenServer.state_fields, "instruction", "products", "acceleration")

    def __init__(self, clients: int, plan: Plan, problem: Problem) -> None:
        super().__init__(clients, plan, problem)
        self.instruction = NO_INSTRUCTION
        self.products = NO_PRODUCTS
        # until the first iteration, with which a view begins
        self.acceleration = tours_of(plan).begin(self.aggregate, self.penalty, problem.fit, 0)

    def reports(self) -> list[Message]:
        """A tour that may be undone ends with no progress."""
        return [] if self.instruction.trial else super().reports()

    def prepare(self) -> None:
        """Compute the instruction for the clients, on a copy of the aggregate: the progress report
        has the original."""
        fit, penalty = self.problem.fit, self.penalty
        if self.plan.roaming.begins_view(self.t):
            self.acceleration = tours_of(self.plan).begin(
                self.aggregate, penalty, fit, self.instruction.tour + 1
            )
            self.instruction = self.acceleration.opening()
        else:
            self.aggregate = z = self.aggregate.copy()
            self.instruction = self.acceleration.end_tour(
                z, fit.objective(z, penalty), penalty, self.products
            )

    def token(self, index: int) -> Token:
        token = super().token(index)
        if self.instruction is not NO_INSTRUCTION:
            instruct(token, self.instruction)
        return token

    def combine(self, tokens: Sequence[Token]) -> None:
        super().combine(tokens)
        self.products = np.asarray(sum(products_of(token) for token in tokens))
