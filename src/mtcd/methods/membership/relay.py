"""An absent client that forwards a token."""

from __future__ import annotations

from collections.abc import Sequence

from mtcd.methods.mtcd.server import TokenClient
from mtcd.protocol.model import Theta
from mtcd.protocol.party import Client, Message, send
from mtcd.protocol.token import Token


class Relay(Client):
    """A client of STCD on a changing network: while it is absent, it forwards a token without an
    update.

    That happens when the holder of the token and all its neighbours leave.
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

    def parameters(self) -> Theta:
        """theta_k."""
        return self.client.parameters()

    def copy_for(self, token: Token) -> Theta:
        """theta_k(gamma)."""
        return self.client.copy_for(token)
