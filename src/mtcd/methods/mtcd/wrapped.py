"""Clients of STCD that decide what becomes of a token before it is a visit; among them those of the
first pass of a lone token that starts from given parameters."""

from __future__ import annotations

from collections.abc import Sequence

from mtcd.methods.mtcd.client import TokenClient
from mtcd.methods.mtcd.plan import Plan
from mtcd.protocol.model import Theta
from mtcd.protocol.party import Client, Message, send
from mtcd.protocol.token import Token


class Wrapped(Client):
    """A client of STCD inside another, which decides what becomes of a token that arrives."""

    state_fields = ("client",)

    def __init__(self, client: TokenClient) -> None:
        self.client = client

    def parameters(self) -> Theta:
        """The parameters theta_k of the client inside."""
        return self.client.parameters()

    def copy_for(self, token: Token) -> Theta:
        """theta_k(gamma), the copy of the client inside for this token."""
        return self.client.copy_for(token)


class Collecting(Wrapped):
    """A client of STCD that adds its representation to the token on the first pass, and then is
    visited as usual.

    ``plan.first_pass`` is the way of the token, whose ``hop`` counts from below 0 up to 0, where
    training starts. The messages of the pass are sent and counted, but are no hops of the training.
    """

    def receive(self, message: Message) -> Sequence[Message]:
        client, token = self.client, message.payload
        assert isinstance(token, Token)
        if token.hop >= 0:
            return client.receive(message)
        way = client.plan.first_pass
        place = len(way) + token.hop
        # Clients that the way passes twice add themselves once, on the first time.
        if way.index(client.number) == place:  # it may come by again
            theta = client.parameters()
            token.aggregate += client.model.represent(theta)
            token.penalty += client.model.penalty(theta)
        token.hop += 1
        if token.hop < 0:
            return [send(client.number, way[place + 1], token)]
        return client.plan.lone_token(token)


def first_messages(plan: Plan) -> list[Message]:
    """The token starts its first pass, at 0."""
    way = plan.first_pass
    token = plan.new_token(0, 0, plan.batches.zeros(plan.outputs), 0.0)
    token.hop = -len(way)
    return [Message(way[0], way[0], token)]
