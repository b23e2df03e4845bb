"""The first pass of a lone token that starts from given parameters: it collects the representations
of all clients."""

from __future__ import annotations

from collections.abc import Sequence

from mtcd.methods.mtcd.plan import Plan
from mtcd.methods.mtcd.wrapped import Wrapped
from mtcd.protocol.party import Message, send
from mtcd.protocol.token import Token


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
