"""Clients of STCD that decide what becomes of a token before it is a visit."""

from __future__ import annotations

from mtcd.methods.mtcd.client import TokenClient
from mtcd.protocol.model import Theta
from mtcd.protocol.party import Client
from mtcd.protocol.token import Token


class Wrapped(Client):
    """A client of STCD inside another, which decides what becomes of a token that arrives."""

    state_fields = ("client",)

    def __init__(self, client: TokenClient) -> None:
        self.client = client

    def parameters(self) -> Theta:
        """theta_k."""
        return self.client.parameters()

    def copy_for(self, token: Token) -> Theta:
        """theta_k(gamma)."""
        return self.client.copy_for(token)
