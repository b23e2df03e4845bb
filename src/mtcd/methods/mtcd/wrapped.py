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
        """The parameters theta_k of the client inside."""
        return self.client.parameters()

    def copy_for(self, token: Token) -> Theta:
        """theta_k(gamma), the copy of the client inside for this token."""
        return self.client.copy_for(token)
