"""The client of MTCD: a visit of a token (the paper's Algorithm 1, TokenRoaming), from its arrival
to the next hop.

:class:`TokenHost` is what every client that tokens visit has in common, :class:`TokenClient` the
one with a linear (or additive) model. STCD is the same client with one token, endless roaming and
no server.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from mtcd.methods.mtcd.combine.rule import SYNC_CHANGE
from mtcd.methods.mtcd.features import Update
from mtcd.methods.mtcd.plan import Done, Plan, Share
from mtcd.protocol.codec.extensions import EXTENSIONS
from mtcd.protocol.gathering import Fresh
from mtcd.protocol.model import ClientModel, LocalUpdates, Theta
from mtcd.protocol.party import MONITOR, SERVER, Client, Message, Recovery, send
from mtcd.protocol.token import Token

__all__ = ["Done", "Plan", "Share", "TokenClient", "TokenHost", "Visits", "WithPenalty"]

WithPenalty = tuple[Theta, float]  # parameters and their penalty
Visits = tuple[dict[int, WithPenalty], WithPenalty]  # copies, and their combination


class TokenHost(Client):
    """A client that tokens visit."""

    number: int
    plan: Plan
    t: int
    unchanged = False
    """Whether the last visit changed nothing."""

    @abstractmethod
    def apply_sync(self, t: int) -> None:
        """Combine the copies at the sync that starts iteration t (Algorithm 2, line 11)."""

    def stop_at_sync(self, t: int, slots: Mapping[str, Any]) -> None:
        # Only a later t: within an iteration the copies are not combined yet.
        if t != self.t:
            self.apply_sync(t)

    @abstractmethod
    def visit(self, token: Token) -> None:
        """Q local updates of theta_k and of the token's aggregate (Algorithm 1, lines 7-9)."""

    @abstractmethod
    def share(self, t: int) -> Message:
        """Send h_k on the batch of iteration t to the server (Algorithm 2, line 5)."""

    def receive(self, message: Message) -> Sequence[Message]:
        token = message.payload
        if isinstance(token, Share):
            return [self.share(token.t)]
        assert isinstance(token, Token)
        self.visit(token)
        return self.pass_on(token)

    def pass_on(self, token: Token) -> Sequence[Message]:
        """Send the token to the next client, or to the server after S hops (Algorithm 1, line
        10)."""
        plan, number = self.plan, self.number
        # Counted after the visit: hop s is the s-th of this iteration.
        token.hop += 1
        floats = plan.aggregate_floats  # numbers that the token carries from here on
        for name, value in token.slots.items():  # of a plain run there are none
            floats += EXTENSIONS[name].floats(value)

        if plan.hops is None:
            to = self.next_client(token)
            hop = Message(number, to, token, floats, floats, self.unchanged)
            # The monitor reads f off the token: at a lone token every visit is progress.
            return [hop, Message(number, MONITOR, token)]

        if token.hop < plan.hops:
            to = self.next_client(token)
            return [Message(number, to, token, floats, floats, self.unchanged)]

        hop_floats = floats if plan.charges_hops else 0
        if plan.tokens_return:
            return [Message(number, SERVER, token, floats, hop_floats, self.unchanged)]

        # The sync does not need the aggregate: a signal goes up, and the paper charges the last hop
        # all the same.
        return [Message(number, SERVER, self.done(token), 0, hop_floats)]

    def done(self, token: Token) -> Done:
        """The signal to the server that the token has made its S hops."""
        return Done(token.index)

    def next_client(self, token: Token) -> int:
        """The next client of the walk."""
        # `previous` is state of the token: some walks need it (non-backtracking), and any client
        # may be asked to continue one that was lost.
        to = self.plan.roaming.next(token.index, token.t, token.hop, self.number, token.previous)
        token.previous = self.number
        return to


class TokenClient(TokenHost):
    """Client k: keeps theta_k, and one copy of it for each token that visits between two syncs.

    Parameters are kept together with their penalty r(theta_k), so that it is computed once.
    """

    state_fields: ClassVar[tuple[str, ...]] = ("t", "theta", "copies", "combined")
    recovery = Recovery.RESTART

    def __init__(self, number: int, model: ClientModel, plan: Plan) -> None:
        self.number, self.model, self.plan = number, model, plan
        self.featured: Update | None = updates_of(number, model, plan)
        """The local updates with the features of the run around them; None if it has none."""
        self.t = 0
        self.theta: WithPenalty = self._with_penalty(model.initial())
        self.copies: dict[int, WithPenalty] = {}
        self.combined = self.theta
        """The combination of the copies, theta_k after the next sync; theta_k itself before the
        first visit."""

    def visit(self, token: Token, steps: tuple[int, float] | None = None) -> None:
        """Q local updates of the copy theta_k(gamma) and of the token's aggregate (Algorithm 1,
        lines 7-9).

        ``steps``: their number and size, if they are not those of the plan.
        """
        plan = self.plan
        if token.t != self.t:
            self.apply_sync(token.t)

        rows = None
        if plan.batches.size is not None:
            rows = plan.batches.rows(token.t)
        if steps is not None:
            Q, eta = steps
        elif plan.schedule is None:
            Q, eta = plan.local_updates, plan.stepsize
        else:
            Q, eta = plan.local_updates, plan.stepsize_at(token.t)
        updates = LocalUpdates(
            Q,
            eta,
            rows,
            plan.majorises,
            (token.index, token.t, token.hop),
            newton=plan.newton,
        )

        # The first visit of a token since the sync starts from theta_k^t, and not from another
        # copy.
        old = self.copies.get(token.index, self.theta)
        if self.featured is None:
            theta = self.model.local_update(old[0], token.aggregate, updates)
        else:
            theta = self.featured(old[0], token, updates)
        new = theta, self.model.penalty(theta)

        # The same object: then nothing has changed, and the ledger counts such a hop by itself.
        self.unchanged = theta is old[0]
        self.copies[token.index] = new
        # the invariant: the token's penalty is that of the copies it knows
        token.penalty += new[1] - old[1]
        self.report_sync_change(token, old, new)

    def report_sync_change(self, token: Token, old: WithPenalty, new: WithPenalty) -> None:
        """Add the visit's change of the combined model to the token, for the server."""
        # f at the sync is that of the combined model. Its penalty does not follow from those of the
        # copies, so each visit adds what it has changed.
        before = self.combined
        if self.plan.combine.one_visitor:
            self.combined = new
        else:
            theta = self.combination()
            self.combined = theta, self.model.penalty(theta)
        token.sync_penalty += self.combined[1] - before[1]

        if self.plan.carries_change:
            change = self.model.represent(self.combined[0]) - self.model.represent(before[0])
            earlier = token.slots.get(SYNC_CHANGE.name)
            if earlier is not None:
                change = earlier + change
            token.put(SYNC_CHANGE.name, change)

    def combination(self) -> Theta:
        """theta_k + w * sum_{visitors} (theta_k(gamma) - theta_k), theta_k after the next sync."""
        start = self.theta[0]
        changes: Theta = 0
        for index in sorted(self.copies):  # the order of visits must not show in the last digit
            changes = changes + (self.copies[index][0] - start)
        return start + self.plan.weights[len(self.copies)] * changes

    def _with_penalty(self, theta: Theta) -> WithPenalty:
        return theta, self.model.penalty(theta)

    def apply_sync(self, t: int) -> None:
        """The sync: theta_k = sum_gamma w_k,gamma theta_k(gamma) (Algorithm 2, line 11).

        A client applies a sync when its next message arrives, so idle clients cost nothing.
        """
        self.theta, self.copies, self.t = self.combined, {}, t

    def visits(self) -> Visits:
        """The changes by visits since the last sync."""
        return self.copies.copy(), self.combined

    def undo_visits(self, since: Visits | None = None) -> None:
        """Roll back to the start of the iteration, or to an earlier result of ``visits``."""
        # Copies are replaced and never changed in place, so keeping the old ones is enough.
        self.copies, self.combined = since or ({}, self.theta)

    def parameters(self) -> Theta:
        """theta_k as it is after the next sync, so with the copies of all tokens combined."""
        return self.combined[0]

    def copy_for(self, token: Token) -> Theta:
        """theta_k(gamma), the copy for this token."""
        # A token of another iteration finds theta_k combined.
        if token.t != self.t:
            return self.combined[0]
        return self.copies.get(token.index, self.theta)[0]

    def share(self, t: int) -> Message:
        """Send h_k on the next mini-batch to the server (Algorithm 2, line 5).

        If a token of this iteration has visited before the request arrives, h_k is that of theta_k
        before the visit.
        """
        # A request of an iteration that this client has reached by a token changes nothing here.
        if t > self.t:
            self.apply_sync(t)
        theta, penalty = self.theta
        fresh = self.model.represent(theta, self.plan.batches.rows(t))
        return send(self.number, SERVER, Fresh(fresh, penalty))


def updates_of(number: int, model: ClientModel, plan: Plan) -> Update | None:
    """The local updates of a client with the features of the run around them; None if it has
    none."""
    if not plan.features:
        return None

    def update(theta: Theta, token: Token, updates: LocalUpdates) -> Any:
        return model.local_update(theta, token.aggregate, updates)

    for feature in plan.features:
        # The last feature is the outermost: it sees what the earlier ones have done.
        update = feature.around(number, update)  # type: ignore[assignment]
    return update
