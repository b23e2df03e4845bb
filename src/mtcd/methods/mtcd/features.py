"""The two interfaces by which a feature joins a method of tokens. The core knows neither feature by
name.

A feature that only adds something to tokens and to visits is a :class:`TokenFeature`; several may
be combined. One that changes what the parties do makes its own parties: :class:`Roles`, one per
run. A run without features has an empty tuple and the plain roles, so that a visit does not pay for
what is off.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Protocol

from mtcd.protocol.codec.limits import Bounds
from mtcd.protocol.model import ClientModel, Problem, Theta
from mtcd.protocol.token import Token
from mtcd.protocol.updates import LocalUpdates

if TYPE_CHECKING:
    from mtcd.methods.mtcd.client import TokenClient
    from mtcd.methods.mtcd.plan import Plan
    from mtcd.methods.mtcd.server import TokenServer

Update = Callable[[Theta, Token, LocalUpdates], Theta]
"""The local updates of a visit: (theta_k, token, updates) -> the new theta_k. The aggregate is
updated in place."""


class TokenFeature(Protocol):
    """Something that every token of a run carries beside its aggregate, and what a visit does with
    it."""

    @property
    def floats(self) -> int:
        """The numbers that it adds to a token, which the ledger counts."""

    @property
    def payload(self) -> type[Token]:
        """The class of tokens that carry it, with its wire schema."""

    @property
    def limits(self) -> Mapping[str, int]:
        """The limits of its wire fields by name (``Bounds.limits``)."""

    def attach(self, token: Token, endless: bool) -> Token:
        """The new token with the feature's first value; ``endless``: there are no syncs."""

    def around(self, client: int, update: Update) -> Update:
        """The update of this client, with what the feature does before and after it. Asked once,
        not per visit."""


class Roles(Protocol):
    """Makes the parties of a run, in place of the plain ones."""

    def check(self, problem: Problem) -> None:
        """Reject a problem that these parties cannot solve."""

    def bounds(self, bounds: Bounds, plan: Plan) -> Bounds:
        """The bounds of the messages, with those of its own fields."""

    def client(self, number: int, model: ClientModel, plan: Plan) -> TokenClient:
        """Client k."""

    def server(self, clients: int, plan: Plan, problem: Problem) -> TokenServer:
        """The server."""
