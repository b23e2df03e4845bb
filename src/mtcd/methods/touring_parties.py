"""The parties of accelerated tours: extrapolated at home without a server (STCD), at the sync with one (MTCD)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from mtcd.arrays import Array
from mtcd.methods.accelerations.acceleration import Acceleration, Memory
from mtcd.methods.hosting import Plan
from mtcd.methods.token_parties import TokenClient, TokenServer, Weighed
from mtcd.protocol.model import ClientModel, Problem
from mtcd.protocol.party import Message
from mtcd.protocol.token import SURVEYED, Tally, Token

MOST_STEPS = 200  # of an update whose step the token asks for


class TouringClient(TokenClient):
    """As any client, but it remembers theta_k at the ends of tours, and may be told to combine them.

    Between an extrapolation and the next visit a client does not hold what the token stands for, but what it
    will hold when it is visited. So progress is told only when the token has met all clients on its tour.
    """

    state_fields = (*TokenClient.state_fields, "memory", "acceleration")

    def __init__(self, number: int, model: ClientModel, plan: Plan) -> None:
        super().__init__(number, model, plan)
        self.memory = Memory()
        self.acceleration: Acceleration | None = None
        """Without a server, at home."""

    def restore(self, state: dict[str, Any]) -> None:
        began = state["acceleration"] is not None
        plan = self.plan
        z = plan.batches.zeros(plan.outputs)
        empty = plan.accelerate(z, 0.0, self.model.fit, 0) if began else None  # no mutants: it is filled next
        self.acceleration = empty
        super().restore(state)

    def receive(self, message: Message) -> Sequence[Message]:
        token = message.payload
        assert isinstance(token, Token)
        updates = 1
        if self.plan.hops is None and self.plan.roaming.ends_tour(token.hop):
            if token.instruction.starts and not self.plan.roaming.begins_view(token.hop):
                self.update(token, 1)  # the last visit of the tour that ends here
            self.at_home(token)
        if token.instruction.starts:  # one for its first visit of this tour, one for its last
            updates = int(token.instruction.tour != self.memory.tour) + int(self.is_last_visit(token))
        self.catch_up(token)
        if updates:
            self.update(token, updates)
        return self.pass_on(token)

    def is_last_visit(self, token: Token) -> bool:
        """Whether the token will not come back before the end of the tour, or before the sync."""
        return self.plan.roaming.is_last_visit(token.index, token.t, token.hop, self.number)

    def update(self, token: Token, times: int) -> None:
        """So many local updates of the copy theta_k(gamma), with the step that the token asks for."""
        reach, L = token.instruction.stepsize, self.model.smoothness if token.instruction.stepsize else 0.0
        Q = min(max(1, math.ceil(reach * L)), MOST_STEPS) if reach else self.plan.local_updates
        eta = min(reach / Q, 1.0 / L) if reach and L else self.plan.stepsize_at(token.t)
        self.local_update(token, times * Q, eta)

    def at_home(self, token: Token) -> None:
        """The start of a tour, without a server: look back on the last ones."""
        z, penalty, fit = token.aggregate, token.penalty, self.model.fit
        if self.plan.roaming.begins_view(token.hop):
            self.acceleration = self.plan.accelerate(z, penalty, fit, token.instruction.tour + 1)
            token.instruction = self.acceleration.opening()
        else:
            assert self.acceleration is not None
            value = fit.objective(z, penalty)
            token.instruction = self.acceleration.end_tour(z, value, penalty, token.tally.products)
        token.tally = Tally(np.zeros(token.instruction.products))
        token.extra = token.instruction.floats

    def catch_up(self, token: Token) -> None:
        """Do as the token says, once a tour, before the update. The aggregate knows of it already."""
        if token.t != self.t:
            self.apply_sync(token.t)
        if token.instruction.tour == self.memory.tour:
            return
        old, old_penalty = self.copies.get(token.index, self.theta)
        new = self.memory.catch_up(old, token.instruction)
        if new is not old:
            self.combined = self._weighed(new)
            if token.index in self.copies:
                self.copies[token.index] = self.combined
            else:  # what it starts from in this iteration, whichever token asks
                self.theta = self.combined
            change = self.combined[1] - old_penalty
            token.penalty += change
            token.sync_penalty += change
        if token.instruction.starts:
            products = token.tally.products
            products[: token.instruction.keep] += [self.model.penalty_product(new, s) for s in self.memory.snapshots]
            if token.instruction.survey:
                products[-SURVEYED:] += self.model.survey()

    def report_sync_change(self, token: Token, old: Weighed, new: Weighed) -> None:
        super().report_sync_change(token, old, new)
        if token.instruction.starts:
            self.tell_products(token, old[0], new[0])

    def tell_products(self, token: Token, old: Array, new: Array) -> None:
        """Bring the inner products up to date that the change since the start of the tour is part of."""
        products, kept, product = token.tally.products, token.instruction.keep, self.model.penalty_product
        *earlier, start = self.memory.snapshots
        step = new - old
        products[kept : 2 * kept] += [*(product(step, s - start) for s in earlier), product(step, start)]
        products[2 * kept] += product(step, (new - start) + (old - start))

    def pass_on(self, token: Token) -> Sequence[Message]:
        messages = super().pass_on(token)
        if self.plan.hops is None and (token.instruction.trial or not self.plan.roaming.has_met_all(token.hop)):
            return messages[:1]  # without the monitor's
        return messages

    def copy_for(self, token: Token) -> Array:
        """What this client holds for the token, or is about to hold if it was there in the last tour."""
        if self.memory.tour < token.instruction.tour - 1:
            return super().copy_for(token)
        return self.memory.preview(super().copy_for(token), token.instruction)


class TouringServer(TokenServer):
    """As any server, but the next tours start from a mix of the last syncs."""

    state_fields = (*TokenServer.state_fields, "instruction", "products", "acceleration")

    def __init__(self, clients: int, plan: Plan, problem: Problem) -> None:
        super().__init__(clients, plan, problem)
        self.acceleration = plan.accelerate(self.aggregate, self.penalty, problem.fit, 0)

    def accelerate(self) -> None:
        """What the clients shall make of the last syncs. What was told of before is not touched."""
        fit, penalty = self.problem.fit, self.penalty
        if self.plan.roaming.begins_view(self.t):
            self.acceleration = self.plan.accelerate(self.aggregate, penalty, fit, self.instruction.tour + 1)
            self.instruction = self.acceleration.opening()
        else:
            self.aggregate = z = self.aggregate.copy()
            self.instruction = self.acceleration.end_tour(z, fit.objective(z, penalty), penalty, self.products)
