"""The clients of sealed tours. A visit takes two messages more than in the open: the masked
gradient goes to the key holder to be decrypted, and comes back.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from mtcd.core.arrays import Array
from mtcd.core.errors import WireError
from mtcd.methods.past_weights import PAST
from mtcd.privacy.sealed.bfv.cipher import Integers, SealedVector, Sealer, find
from mtcd.privacy.sealed.block import SealedBlock
from mtcd.privacy.sealed.check_column import COLUMNS, draw_weights, with_check, without_check
from mtcd.privacy.sealed.payloads import (
    Block,
    SealedAnswer,
    SealedEnd,
    SealedKeys,
    SealedRequest,
    SealedToken,
    as_block,
)
from mtcd.privacy.sealed.plan import SealedPlan
from mtcd.protocol.party import SERVER, Client, Message, send

NOTHING: Block = np.empty(0, np.uint8)
NO_WEIGHTS: Integers = np.empty(0, np.int64)


class SealedClient(Client):
    """Client k: learns its own gradient at each visit, and nothing else."""

    state_fields: ClassVar[tuple[str, ...]] = ("block", "public", "token", "mask", "check", "asked")

    def __init__(self, number: int, block: SealedBlock, plan: SealedPlan) -> None:
        self.number, self.block, self.plan = number, block, plan
        self.public: Block = NOTHING
        """The public keys of the run."""
        self.token: SealedToken | None = None
        """The token that is here: it waits for the keys, or for the answer of the key holder."""
        self.mask: Integers | None = None
        self.check: Integers = NO_WEIGHTS
        """The secret weights of the check column; kept, since an answer may come after a
        restart."""
        self.asked = 0
        """The last tour in which this client has asked the key holder."""
        self._prepared: tuple[Sealer, Any] | None = None

    def restore(self, state: dict[str, Any]) -> None:
        super().restore(state)
        # Keys and columns of another process.
        self._prepared = None

    def parameters(self) -> Array:
        return self.block.parameters()

    def stop_at_sync(self, t: int, slots: Mapping[str, Any]) -> None:
        """The training has ended after tour t: move to its mix, or undo what a later tour has
        begun."""
        past = slots.get(PAST.name, {})
        # The mix after tour t counts only if this client was in tour t.
        weights = np.array([past[i][0] for i in sorted(past) if t == self.block.tour])
        if t + 1 >= self.block.tour:
            stretch = 1.0  # no tour follows that would use the move
            self.block.start_tour(t + 1, weights, stretch)
        self.token = self.mask = None
        self.asked = t  # a training that is resumed begins the next tour again

    def receive(self, message: Message) -> Sequence[Message]:
        match message.payload:
            case SealedKeys() as keys if keys.client == self.number:
                return self.take_keys(keys.data)
            case SealedToken() as token:
                self._check_way(message.sender, token)
                return self.arrive(token)
            case SealedAnswer() as answer if answer.client == self.number:
                return self.finish(answer)
            case SealedKeys() | SealedAnswer() as passing:
                return [send(self.number, self.plan.towards(self.number, passing.client), passing)]
            case SealedRequest() as passing:
                return [
                    send(self.number, self.plan.towards(self.number, self.plan.holder), passing)
                ]
        raise WireError("payload", "is not one that a client of sealed tours receives")

    @property
    def sealer(self) -> Sealer:
        """The public side of the cipher."""
        return self._prepare()[0]

    def _prepare(self) -> tuple[Sealer, Any]:
        """The sealer and the encoded columns, made when they are first used."""
        if self._prepared is None:
            sealer = find(self.plan.scheme).sealer(self.public.tobytes())
            wanted = self.plan.parameters()
            # Another modulus or bound could make sums wrap around, and gradients tell more than
            # they should.
            if sealer.parameters != wanted:
                raise WireError("sealed.parameters", "are not those of this run")
            columns = self.block.use(self.plan.scales(wanted))
            self._prepared = sealer, self._encoded(sealer, columns)
        return self._prepared

    def _encoded(self, sealer: Sealer, columns: Integers) -> Any:
        """The columns for products, with one that checks the answers where the method has it."""
        if not self.plan.checks_answers:
            return sealer.encode(columns)

        modulus = sealer.parameters.plain_modulus
        if not self.check.size:
            self.check = draw_weights(columns.shape[1], modulus)
        return sealer.encode(with_check(columns, self.check, modulus), checks=COLUMNS)

    def take_keys(self, data: Block) -> Sequence[Message]:
        """The keys of the run, or of a training that is resumed; a token may have come before
        them."""
        self.public, self._prepared = data, None
        self._prepare()
        if self.token is None:
            return []
        return self.visit(self.token)

    def arrive(self, token: SealedToken) -> Sequence[Message]:
        """A token arrives: an update at the first visit of a tour, otherwise it goes on."""
        # By the first visit: a tour may pass a client several times, but it is updated once.
        is_first = self.plan.order(token.t).index(self.number) == token.place
        if is_first:
            self._check_tour(token.t)
        if self.block.tour != token.t:
            self.block.start_tour(token.t, token.weights, token.stretch)

        # the key holder answers a client once in a tour: more sums would tell more of g
        if not is_first:
            return self.pass_on(token)

        self.token = token
        if not self.public.size:
            return []  # links may deliver the token before the keys
        return self.visit(token)

    def _check_way(self, sender: int, token: SealedToken) -> None:
        """Refuse a token that does not come from the party before on its way.

        The label holder takes the labels off at the start of a tour, and adds them at its end. A
        key holder that sent a token of its own into the middle, or to the end, would read them.
        """
        order = self.plan.order(token.t)
        before = self.plan.holder
        if token.place > 0:
            before = order[token.place - 1]
        if sender != before or order[token.place] != self.number:
            raise WireError("sealed token", "does not come from the party before on its way")

    def _check_tour(self, t: int) -> None:
        """Refuse to ask twice in a tour, or in more tours than the cap.

        Every token that the key holder opens tells it a vector of the parties' columns. It may not
        follow the protocol, so the cap is every client's own.
        """
        most = self.plan.most_tours
        if most is not None and t > most:
            raise WireError("sealed token", f"is of tour {t}, but this training has {most} at most")
        if t <= self.asked:
            raise WireError(
                "sealed token", f"is of tour {t}, though tour {self.asked} has begun here"
            )

    def visit(self, token: SealedToken) -> Sequence[Message]:
        """Compute Enc(X_k^T g), mask it, and have it decrypted."""
        # Before the request leaves: after a crash, no second one for this tour is made.
        self.asked = token.t
        sealer, columns = self._prepare()
        vector = sealer.vector_from_bytes(token.data.tobytes())
        masked, self.mask = sealer.mask(sealer.product(vector, columns))
        data = as_block(sealer.to_bytes(masked))
        request = SealedRequest(self.number, token.t, token.place, data)
        return [send(self.number, self.plan.towards(self.number, self.plan.holder), request)]

    def finish(self, answer: SealedAnswer) -> Sequence[Message]:
        """Take the mask off, minimise the bound of f over the block, and pass the token on."""
        products, token, sealer = self.unmasked(answer), self.token, self.sealer
        assert token is not None
        # before anything depends on the answer: a step along a false one would tell the table
        if self.plan.checks_answers:
            products = without_check(products, self.check, sealer.parameters.plain_modulus)
        added = self.block.update(
            products.astype(float), token.scale, self.plan.draws(token.t, self.number)
        )
        # On the token as it came: the product was a copy.
        vector = sealer.add_plain(sealer.vector_from_bytes(token.data.tobytes()), added)
        self.token = self.mask = None
        # the difference to the token that came would otherwise be what was added, in the clear
        return self.pass_on(self.with_vector(token, sealer.rerandomise(vector)))

    def unmasked(self, answer: SealedAnswer) -> Integers:
        """The products in the answer to the request that is under way. Raises WireError for any
        other answer."""
        token = self.token
        if token is None or self.mask is None or (answer.t, answer.place) != (token.t, token.place):
            raise WireError("sealed answer", "is not to the request that this client has made")
        return self.sealer.unmask(answer.values.astype(np.int64), self.mask)

    def with_vector(self, token: SealedToken, vector: SealedVector) -> SealedToken:
        """The token with another ciphertext."""
        return replace(token, data=as_block(self.sealer.to_bytes(vector)))

    def pass_on(self, token: SealedToken) -> Sequence[Message]:
        """Send the token to the next client of the tour; flooded, if that is the key holder, which
        opens it."""
        to = self.plan.order(token.t)[token.place + 1]
        # only the last client before it is opened floods: flooded, it can only be decrypted
        if to == self.plan.holder and token.place + 1 == self.plan.length:
            sealer = self.sealer
            token = self.with_vector(
                token, sealer.flood_vector(sealer.vector_from_bytes(token.data.tobytes()))
            )
        return [send(self.number, to, replace(token, place=token.place + 1), hop=True)]


class LabelHolder(SealedClient):
    """The client with the labels, where there is a server: subtracts y under encryption, and adds
    it back."""

    state_fields = (*SealedClient.state_fields, "begun", "sums")

    def __init__(self, number: int, block: SealedBlock, plan: SealedPlan, labels: Array) -> None:
        super().__init__(number, block, plan)
        self.labels = labels
        self.begun: Block = NOTHING
        """The token as the server sent it."""
        self.sums = plan.label_sums(labels)

    def arrive(self, token: SealedToken) -> Sequence[Message]:
        if token.place == self.plan.length:
            return self.end_tour(token)
        return super().arrive(token)

    def visit(self, token: SealedToken) -> Sequence[Message]:
        sealer = self.sealer
        # Kept to form the difference at the end of the tour, whose product with y is f's label
        # part.
        self.begun = token.data
        # the server has encrypted a'(Z), without labels, which it does not have: g is a'(Z) - y
        vector = sealer.subtract_plain(
            sealer.vector_from_bytes(token.data.tobytes()), self._y(token)
        )
        self.token = token = self.with_vector(token, vector)
        return super().visit(token)

    def end_tour(self, token: SealedToken) -> Sequence[Message]:
        """Add y back, so that the server sees scores only, and ask it to decrypt <y, change>,
        masked."""
        if not self.begun.size:
            raise WireError("sealed token", "ends a tour that has not begun here")

        sealer = self.sealer
        vector = sealer.add_plain(sealer.vector_from_bytes(token.data.tobytes()), self._y(token))
        token = self.with_vector(token, vector)
        # Nothing is asked when nothing may be told: even that a sum was too long would tell
        # something.
        if not self.plan.needs_label_sums or self.sums.exhausted:
            return self.report(token, None)

        change = sealer.subtract(vector, sealer.vector_from_bytes(self.begun.tobytes()))
        column, _ = self._label_column()
        masked, self.mask = sealer.mask(sealer.product(change, sealer.encode(column)))
        self.token = token
        data = as_block(sealer.to_bytes(masked))
        return [send(self.number, SERVER, SealedRequest(self.number, token.t, token.place, data))]

    def finish(self, answer: SealedAnswer) -> Sequence[Message]:
        token = self.token
        if token is None or token.place < self.plan.length:
            return super().finish(answer)

        [product] = self.unmasked(answer)
        _, scale = self._label_column()
        exact = float(product) / (scale * self.plan.loss.curvature * token.scale)
        self.token = self.mask = None
        return self.report(token, self.sums.tell(exact))

    def report(self, token: SealedToken, label_sum: float | None) -> Sequence[Message]:
        """End the tour at the server. ``label_sum``: <y, change>, rounded; None if it is not
        told."""
        sealer = self.sealer
        vector = sealer.vector_from_bytes(token.data.tobytes())
        flooded = as_block(sealer.to_bytes(sealer.flood_vector(vector)))
        self.begun = NOTHING
        told = label_sum is not None
        # A sum of 0 and no sum are told apart by `told`.
        end = SealedEnd(token.t, flooded, told, label_sum or 0.0, self.sums.constant)
        return [send(self.number, SERVER, end)]

    def _label_column(self) -> tuple[Integers, float]:
        """The labels as a column of integers, for a product with a difference of two tokens, and
        their scale."""
        scales = self.plan.scales(self.sealer.parameters)
        column, [scale] = scales.integers(self.labels[:, None], tokens=2)
        return column, float(scale)

    def _y(self, token: SealedToken) -> Any:
        return self.plan.scales(self.sealer.parameters).vector(self.labels, token.scale)
