"""The key holder of sealed tours: the server, or the label holder where there is none."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from mtcd.core.arrays import Array
from mtcd.core.errors import DataError, WireError
from mtcd.methods.past_weights import PAST
from mtcd.privacy.sealed.bfv.cipher import Integers, SecretKey, find
from mtcd.privacy.sealed.block import SealedBlock
from mtcd.privacy.sealed.client import SealedClient
from mtcd.privacy.sealed.payloads import (
    Block,
    NextTour,
    SealedAnswer,
    SealedEnd,
    SealedKeys,
    SealedRequest,
    SealedToken,
    as_block,
)
from mtcd.privacy.sealed.plan import MakeKey, SealedPlan
from mtcd.protocol.party import MONITOR, SERVER, Message, Party, Progress, send
from mtcd.protocol.state import Stateful

NO_ROOM = (
    "The loss fell further below 0 than the integers of a sealed training have room for, as the "
    "randomised labels are fitted too closely: set a larger model.l2, a larger "
    "privacy.labels.epsilon, or a smaller privacy.labels.soft."
)


class KeyHolding(Stateful):
    """What the key holder has beside a party's own part: the key, the scores, and the tour that is
    under way."""

    state_fields = (
        "fingerprint",
        "tour",
        "completed",
        "scale",
        "opened",
        "answered",
        "summed",
        "seen",
        "steering",
    )

    def __init__(self, number: int, plan: SealedPlan, make_key: MakeKey | None) -> None:
        self.number, self.plan, self._make_key = number, plan, make_key
        self.fingerprint = ""
        """Of the key that the clients know."""
        self.tour = self.completed = 0
        """The tour that began last, and the one that ended last."""
        self.scale = 1.0
        """Integers per unit of g in this tour."""
        self.opened = np.zeros(0, np.int64)
        """The integers of the token at the start of the tour, without labels."""
        self.answered: list[int] = []
        """The clients whose requests were answered in this tour: one each."""
        self.summed = False
        """Whether the label holder has its sum of this tour."""
        self.seen: list[float] = []
        """f after each tour that has ended."""
        self.steering = plan.steering()

    # Until the first tour nothing was opened.
    @cached_property
    def key(self) -> SecretKey:
        """The secret key: made, or loaded, when it is first used."""
        parameters = self.plan.parameters()
        return (self._make_key or find(self.plan.scheme).generate)(parameters)

    @cached_property
    def scales(self) -> Any:
        """The fixed point of the run."""
        return self.plan.scales(self.key.parameters)

    def begin(self, t: int) -> tuple[list[Message], Integers]:
        """Start tour t: the keys for clients that do not have them, and the integers of the token
        without labels."""
        # also after a restart for which the key was lost: clients take a new one at any time
        keys: list[Message] = []
        if self.fingerprint != self.key.fingerprint:
            self.fingerprint = self.key.fingerprint
            public = as_block(self.key.public)
            others = [k for k in range(self.plan.clients) if k != self.number]
            keys = [send(self.number, self._towards(k), SealedKeys(t, k, public)) for k in others]
        # One answer for each client and tour: the lists begin anew.
        self.tour, self.answered, self.summed = t, [], False

        # |g| is at most the root of 2 c f: the smaller f, the finer can the token be rounded
        scale = self.scales.token
        if self.plan.corrects(t):
            scale = self.scales.token_to_correct
        self.scale = scale(self.steering.most_objective())
        self.opened = self.scales.vector(self.steering.slope(), self.scale)
        return keys, self.opened

    def _towards(self, client: int) -> int:
        if self.number == SERVER:
            return client
        return self.plan.towards(self.number, client)

    def answer(self, sender: int, request: SealedRequest) -> Sequence[Message]:
        """Decrypt a masked gradient: one for each client and tour, and one sum over labels.

        Raises WireError for any other request, and for products with more columns than the client
        has declared.
        """
        # The last place of a tour is the label holder's request for its sum.
        client, summing = request.client, self._is_label_sum(request)
        # Answers to old tours would be further equations about the same columns.
        if request.t != self.tour:
            raise WireError(
                "sealed request", f"is of tour {request.t}, but tour {self.tour} is under way"
            )

        if summing:
            answered, expected, columns = self.summed, self.plan.length, 1
        else:
            answered = client in self.answered
            expected = self.plan.order(request.t).index(client)
            columns = self.plan.asked(client)

        # each answer is as many sums of g: more of them than were agreed would tell g, and labels
        if answered:
            raise WireError("sealed request", "is the second of this client in a tour")
        if expected != request.place or (self.number == SERVER and sender != client):
            raise WireError("sealed request", "is of a client that the token does not visit now")

        product = self.key.product_from_bytes(request.data.tobytes())
        self._check_columns(product.columns, columns)
        values = self.key.open_product(product)
        # Noted before the answer leaves.
        if summing:
            self.summed = True
        else:
            self.answered.append(client)
            # The budget's noise is added here; a plain sealed training adds none.
            values = self.steering.released(values, client, request.t)
        answer = SealedAnswer(client, request.t, request.place, values.astype(float))
        return [send(self.number, self._towards(client), answer)]

    def _is_label_sum(self, request: SealedRequest) -> bool:
        """Whether a request is for the sum over labels, which the label holder makes at the end of
        a tour."""
        plan = self.plan
        at_end = request.client == plan.home and request.place == plan.length
        # Only a server needs these sums: a label holder with the key has the labels.
        return plan.server and plan.needs_label_sums and at_end

    def _check_columns(self, asked: int, agreed: int) -> None:
        """Refuse products with more columns, or fewer, than a client has declared: they would tell
        it labels."""
        if asked != agreed:
            raise WireError(
                "sealed request",
                f"is for products with {asked} columns, but {agreed} are agreed for this client",
            )

    def token(self, t: int, place: int, values: Integers) -> SealedToken:
        """The token with these integers, encrypted."""
        data = as_block(self.key.to_bytes(self.key.encrypt(values)))
        return SealedToken(t, place, self.steering.weights, self.steering.stretch, self.scale, data)

    def open(self, data: Block) -> Integers:
        """Decrypt the token, as it is at the end of a tour."""
        return self.key.open_vector(self.key.vector_from_bytes(data.tobytes()))

    @property
    def past(self) -> dict[int, Array]:
        """The weights of the last mix, one by one, as the announcement of the end carries them."""
        return {i: np.array([w]) for i, w in enumerate(self.steering.weights)}

    def end_tour(
        self,
        opened: Integers,
        start: Integers,
        label_sum: Callable[[Array], float | None],
    ) -> list[Message]:
        """Choose the mix from which the next tour starts; report the end of this one.

        ``start``: the integers of the token at the start of the tour; ``label_sum``: <y, change>,
        None if unknown.
        """
        # tokens carry integers: the change of the scores is exact but for what clients have rounded
        change, sums = self.scales.changes(opened, start, self.scale)
        if self.plan.corrects(self.tour):
            self.steering.correct(change, sums, label_sum(change))
        else:
            self.steering.end_tour(
                change, sums, label_sum(change), self.scales.rounding(self.scale)
            )
        self.completed = self.tour
        self.seen.append(float(self.steering.objective()))
        # Integers would wrap around, and the numbers then mean nothing.
        if self.seen[-1] < self.plan.loss.least(self.plan.samples):
            raise DataError(NO_ROOM)
        return self._next_tour()

    def objectives(self) -> list[tuple[int, float]]:
        """Tours, and f after each of them, as far as the sums over labels tell it."""
        at_zero = (
            self.steering.fit.objective(np.zeros(self.plan.samples), 0.0) + self.steering.constant
        )
        return list(enumerate([at_zero, *self.seen]))

    def _next_tour(self) -> list[Message]:
        # f stays with the key holder: what it reports to the monitor has no value.
        t = self.tour
        progress = Message(self.number, MONITOR, Progress(t, t, None, 0.0))
        # each opened token is a vector of the parties' columns: see docs/leaks.md
        if self.plan.most_tours is not None and t >= self.plan.most_tours:
            return [progress]
        return [progress, Message(self.number, self.number, NextTour(t + 1))]


class SealedServer(Party):
    """The server with the key: it has neither ids nor labels."""

    state_fields = ("holding",)

    def __init__(self, plan: SealedPlan, make_key: MakeKey | None = None) -> None:
        self.plan = plan
        self.holding = KeyHolding(SERVER, plan, make_key)

    def receive(self, message: Message) -> Sequence[Message]:
        holding = self.holding
        match message.payload:
            case NextTour() as signal:
                keys, integers = holding.begin(signal.t)
                return [*keys, send(SERVER, self.plan.home, holding.token(signal.t, 0, integers))]
            case SealedRequest() as request:
                return holding.answer(message.sender, request)
            case SealedEnd() as end:
                return self.end_tour(end)
        raise WireError("payload", "is not one that the server of sealed tours receives")

    def end_tour(self, end: SealedEnd) -> Sequence[Message]:
        """Open the token, and choose the mix from which the next tour starts."""
        holding = self.holding
        if end.t != holding.tour:
            raise WireError("sealed end", "is not of the tour that is under way")
        label_sum = None
        if end.told:
            label_sum = end.label_sum
        # it depends on the labels alone: the server cannot compute it
        holding.steering.constant = end.constant
        return holding.end_tour(holding.open(end.token), holding.opened, lambda change: label_sum)

    def last_sync(self) -> tuple[int, int]:
        return self.holding.completed, self.holding.completed

    def at_end(self) -> Mapping[str, Any]:
        """The weights of the last mix."""
        return {PAST.name: self.holding.past}


class LoneHolder(SealedClient):
    """The label holder with the key, where there is no server: it opens tokens with the labels in
    them."""

    state_fields = (*SealedClient.state_fields, "holding")

    def __init__(
        self,
        number: int,
        block: SealedBlock,
        plan: SealedPlan,
        labels: Array,
        make_key: MakeKey | None = None,
    ) -> None:
        super().__init__(number, block, plan)
        self.labels = labels
        self.holding = KeyHolding(number, plan, make_key)
        self.holding.steering.constant = plan.constant_of(labels)

    def at_end(self) -> Mapping[str, Any]:
        """The weights of the last mix."""
        return {PAST.name: self.holding.past}

    def last_sync(self) -> tuple[int, int]:
        return self.holding.completed, self.holding.completed

    def parameters(self) -> Array:
        """theta_k after the tour that ended last."""
        return self.block.preview(self.holding.completed + 1, self.holding.steering.weights)

    def receive(self, message: Message) -> Sequence[Message]:
        match message.payload:
            case NextTour() as signal:
                return self.begin(signal.t)
            case SealedRequest() as request:
                return self.holding.answer(message.sender, request)
            case SealedToken() as token if token.place == self.plan.length:
                return self.end_tour(token)
        return super().receive(message)

    @cached_property
    def _columns(self) -> Integers:
        return self.block.use(self.holding.scales)

    def begin(self, t: int) -> Sequence[Message]:
        """Start a tour with the own update, which needs no encryption."""
        holding = self.holding
        keys, integers = holding.begin(t)

        # X^T g of its own columns in the clear: the holder knows g at the start of the tour
        columns = self._columns
        # Its own update first, as the token starts with it: the holder needs no encryption for it.
        self.block.start_tour(t, holding.steering.weights, holding.steering.stretch)
        derivative = integers - holding.scales.vector(self.labels, holding.scale)
        products, draws = (columns.T @ derivative).astype(float), self.plan.draws(t, self.number)
        added = self.block.update(products, holding.scale, draws)
        token = holding.token(t, 0, derivative + added)
        return [*keys, *self.pass_on(token)]

    def end_tour(self, token: SealedToken) -> Sequence[Message]:
        """Open the token, and choose the mix from which the next tour starts."""
        holding = self.holding
        # The token that it opens has no labels at its start, as others must not tell them from it.
        derivative = holding.opened - holding.scales.vector(self.labels, holding.scale)
        if token.t != holding.tour:
            raise WireError("sealed token", "is not of the tour that is under way")
        return holding.end_tour(
            holding.open(token.data), derivative, lambda change: float(self.labels @ change)
        )
