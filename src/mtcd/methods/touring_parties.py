"""The client of accelerated tours: extrapolated at home without a server (STCD), at the sync with one (MTCD)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from mtcd.methods.acceleration import Memory
from mtcd.methods.token_parties import Plan, TokenClient, Weighed
from mtcd.protocol.model import ClientModel
from mtcd.protocol.party import Message
from mtcd.protocol.token import Tally, Token

Array = NDArray[np.float64]


class TouringClient(TokenClient):
    """As any client, but it remembers theta_k at the ends of tours, and may be told to combine them.

    Between an extrapolation and the next visit a client does not hold what the token stands for, but what it
    will hold when it is visited. So progress is told at the ends of tours only, when nobody is behind.
    """

    def __init__(self, number: int, model: ClientModel, plan: Plan) -> None:
        super().__init__(number, model, plan)
        self.memory = Memory()

    def receive(self, message: Message) -> Sequence[Message]:
        token: Token = message.payload
        if self.plan.hops is None and token.hop % self.tour_length == 0:
            self.at_home(token)
        self.catch_up(token)
        self.visit(token)
        return self.pass_on(token)

    def at_home(self, token: Token) -> None:
        """The start of a tour, without a server: look back on the last ones."""
        z, penalty, fit = token.aggregate, token.penalty, self.model.fit
        if token.hop == 0:
            self.acceleration = self.plan.accelerate(z, penalty, fit, token.instruction.tour + 1)
            token.instruction = self.acceleration.opening()
        else:
            value = fit.objective(z, penalty)
            token.instruction = self.acceleration.end_tour(z, value, penalty, token.tally.products)
        token.tally = Tally(np.zeros(token.instruction.products))
        token.extra = token.instruction.floats

    @cached_property
    def tour_length(self) -> int:
        """Hops until the token is home again."""
        return self.plan.roaming.walks[0].length or 1

    def catch_up(self, token: Token) -> None:
        """Do as the token says, once a tour, before the update. The aggregate knows of it already."""
        if token.t != self.t:
            self.settle(token.t)
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
            self.tell_products(token, new, of_start=True)

    def tell_products(self, token: Token, change: Array, of_start: bool) -> None:
        """Add the inner products with the snapshots to those of theta now, and of theta at the start of the tour."""
        products, kept = token.tally.products, token.instruction.keep
        for i, snapshot in enumerate(self.memory.snapshots):
            product = self.model.penalty_product(change, snapshot)
            products[kept + i] += product
            if of_start:
                products[i] += product

    def foresee(self, token: Token, old: Weighed, new: Weighed) -> None:
        super().foresee(token, old, new)
        if token.instruction.starts:
            self.tell_products(token, new[0] - old[0], of_start=False)

    def pass_on(self, token: Token) -> Sequence[Message]:
        messages = super().pass_on(token)
        if self.plan.hops is None and token.hop % self.tour_length:
            return messages[:1]  # without the monitor's
        return messages

    def copy_for(self, token: Token) -> Array:
        """What this client holds for the token, or is about to hold."""
        return self.memory.preview(super().copy_for(token), token.instruction)
