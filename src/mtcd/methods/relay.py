"""A client that has left, while a token is still on its way over it."""

from __future__ import annotations

from collections.abc import Sequence

from mtcd.arrays import Array
from mtcd.methods.token_parties import TokenClient
from mtcd.protocol.party import Client, Message, send
from mtcd.protocol.token import Token


class Relay(Client):
    """The client, where there is no server and clients come and go: when it has left, it only passes a token on.

    That happens when the token was at a client that left, and all its neighbours had left too.
    """

    state_fields = ("client",)

    def __init__(self, client: TokenClient) -> None:
        self.client = client

    def receive(self, message: Message) -> Sequence[Message]:
        client, token = self.client, message.payload
        assert isinstance(token, Token)
        if not client.plan.roaming.is_away(client.number, token.hop):
            return client.receive(message)
        return [send(client.number, client.next_client(token), token)]

    def parameters(self) -> Array:
        """theta_k."""
        return self.client.parameters()

    def copy_for(self, token: Token) -> Array:
        """theta_k(gamma)."""
        return self.client.copy_for(token)
