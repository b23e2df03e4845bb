"""The client of accelerated STCD: a token that tours, and is extrapolated at home after every M + 1 tours."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from mtcd.methods.acceleration import Extrapolation, Memory
from mtcd.methods.token_parties import Plan, TokenClient
from mtcd.protocol.model import ClientModel
from mtcd.protocol.party import MONITOR, Message
from mtcd.protocol.token import Token

Array = NDArray[np.float64]


class TouringClient(TokenClient):
    """As any client of STCD, but it remembers theta_k at the ends of tours, and may be told to combine them.

    Between an extrapolation and the next visit a client does not hold what the token stands for, but what it
    will hold when it is visited. So progress is told at the ends of tours only, when nobody is behind.
    """

    def __init__(self, number: int, model: ClientModel, plan: Plan) -> None:
        super().__init__(number, model, plan)
        self.memory = Memory()

    @cached_property
    def extrapolation(self) -> Extrapolation:
        """What only the home client needs."""
        return Extrapolation(self.plan.depth or 0)

    def receive(self, message: Message) -> Sequence[Message]:
        token: Token = message.payload
        if token.hop == 0:
            self.extrapolation.begin(token.aggregate)
        elif token.hop % self.tour_length == 0:
            value = self.model.objective(token.aggregate, token.penalty)
            token.instruction = self.extrapolation.end_tour(token.aggregate, value)
        self.catch_up(token)
        self.visit(token)
        return self.pass_on(token)

    @cached_property
    def tour_length(self) -> int:
        """Hops until the token is home again."""
        return self.plan.roaming.walks[0].length or 1

    def catch_up(self, token: Token) -> None:
        """Do as the token says, once a tour, before the update. The aggregate knows of it already."""
        old, old_penalty = self.copies.get(token.index, self.theta)
        new = self.memory.catch_up(old, token.instruction)
        if new is not old:
            self.combined = self.copies[token.index] = self._weighed(new)
            token.penalty += self.combined[1] - old_penalty

    def pass_on(self, token: Token) -> Sequence[Message]:
        plan = self.plan
        token.hop += 1
        floats = plan.floats + len(token.instruction.weights)
        messages = [Message(self.number, self.next_client(token), token, floats, floats)]
        if token.hop % self.tour_length == 0:
            messages.append(Message(self.number, MONITOR, token))
        return messages

    def copy_for(self, token: Token) -> Array:
        """What this client holds for the token, or is about to hold."""
        return self.memory.preview(super().copy_for(token), token.instruction)
