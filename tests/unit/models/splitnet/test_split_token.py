"""The token of split networks: gradients through it, and the invariant: H is what the clients hold
for it."""

from collections import deque
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import mtcd
from mtcd.methods.mtcd.mtcd import MTCD, STCD
from mtcd.methods.svfl.svfl import SVFL
from mtcd.models.splitnet.client import CONTRIBUTION
from mtcd.models.splitnet.parties import SplitClient
from mtcd.models.splitnet.setup import SplitParties, split_parties
from mtcd.protocol.batches import Batches
from mtcd.protocol.party import MONITOR, Message
from mtcd.protocol.token import Token
from split_problems import (
    SplitCase,
    case,
    cross_entropy,
    net,
    normed,
    receiver,
    split_cases,
    split_settings,
)


def joint_gradients(one: SplitCase, rows: Any) -> list[list[Any]]:
    """Of one forward and backward pass through all networks and the fusion at once; the last are
    those of theta_0."""
    nets = [one.model.representations[client].train() for client in one.data.clients]
    told = [
        net(torch.as_tensor(x[rows]))
        for net, x in zip(nets, one.data.features.values(), strict=True)
    ]
    stacked = torch.stack(told) if one.model.aggregation != "concat" else None
    H = {
        "sum": lambda: stacked.sum(0),
        "mean": lambda: stacked.mean(0),
        "concat": lambda: torch.cat(told, 1),
    }
    loss = cross_entropy(
        one.model.fusion(H[one.model.aggregation]()), torch.as_tensor(one.data.labels[rows])
    )
    loss.backward()
    return [[p.grad for p in module.parameters()] for module in (*nets, one.model.fusion)]


@pytest.mark.parametrize("made", [net, normed])
@pytest.mark.parametrize("aggregation", ["sum", "mean", "concat"])
@pytest.mark.parametrize("batch", [None, 6])
def test_gradients_through_the_token_are_those_of_the_joint_model(
    aggregation: str, made: Any, batch: int | None
) -> None:
    """After one round of SVFL with one step, every theta has moved along its joint gradient."""
    one = case(aggregation=aggregation, made=made)
    eta = 0.5
    run = one.train(SVFL(1, eta, batch), mtcd.Stop(iterations=1))
    rows = Batches(one.data.samples, batch, one.seed).rows(0)
    gradients = joint_gradients(one, slice(None) if rows is None else rows)
    befores = [*(one.model.representations[c] for c in one.data.clients), one.model.fusion]
    afters = [*(run.modules[c] for c in one.data.clients), run.fusion]
    for before, after, grads in zip(befores, afters, gradients, strict=True):
        for old, new, g in zip(before.parameters(), after.parameters(), grads, strict=True):
            assert g.abs().max() > 1e-4 or made is normed  # a bias before batch norm has none
            torch.testing.assert_close((old - new).detach() / eta, g, rtol=1e-5, atol=1e-6)


class Watched:
    """Parties whose messages are delivered one by one; it knows with what every client started into
    an iteration."""

    def __init__(self, one: SplitCase, method: Any) -> None:
        self.aggregation = one.model.aggregation
        self.parties: SplitParties = split_parties(method, one.problem(), one.network, one.seed)
        self.start: list[Any] = []
        self.visitors: dict[int, int] = {}

    def deliver(self, deliveries: int, check_after: int, last: bool) -> int:
        """The first or the last message that was sent comes next; all tokens under way are checked
        each time."""
        parties, waiting, checked = self.parties.parties(), deque[Message](), 0
        outgoing = parties.opening
        for count in range(deliveries):
            waiting.extend(message for message in outgoing if message.to != MONITOR)
            tokens = [message.payload for message in waiting if isinstance(message.payload, Token)]
            if any(
                isinstance(message.payload, Token) and message.payload.hop <= 0
                for message in outgoing
            ):
                self.start, self.visitors = (
                    [client.network.state() for client in self.parties.clients],
                    {},
                )
            for token in tokens if count >= check_after else ():
                self.check(token)
                checked += 1
            message = waiting.pop() if last else waiting.popleft()
            if isinstance(message.payload, Token) and message.to >= 0:
                self.visitors[message.to] = message.payload.index
            outgoing = receiver(parties, message).receive(message)
        return checked

    def check(self, token: Token) -> None:
        parts = [self.part(client, token) for client in self.parties.clients]
        if self.aggregation == "concat":
            H = torch.cat(parts, dim=1)
        else:
            H = sum(parts) / (len(parts) if self.aggregation == "mean" else 1)
        torch.testing.assert_close(token.aggregate, H, rtol=1e-5, atol=5e-6)

    def part(self, client: SplitClient, token: Token) -> Any:
        """What this client has in this token, represented from scratch from the copy that it holds
        for it."""
        network, now = client.network, client.network.state()
        held = now
        if client.plan.combine.one_visitor:
            held = (
                now
                if self.visitors.get(client.number) == token.index
                else self.start[client.number]
            )
        elif client.in_hand not in (None, token.index):
            held = client.copies.get(token.index, client.start)
        network.load(held)
        x = network.features.batch(token.t)
        fresh = network.forward(x, None, track=False)
        network.load(now)
        return fresh if CONTRIBUTION in held else torch.zeros_like(fresh)


def check_invariant(
    one: SplitCase, method: Any, deliveries: int, last: bool = False, after: int = 0
) -> None:
    assert Watched(one, method).deliver(deliveries, after, last) > 0


@given(st.data(), st.booleans())
@settings(max_examples=30)
def test_every_token_is_the_aggregate_of_what_the_clients_hold_for_it(
    data: st.DataObject, last: bool
) -> None:
    one = data.draw(split_cases())
    check_invariant(one, data.draw(split_settings(one)), deliveries=40, last=last)


@given(split_cases(connected=True), st.integers(1, 3), st.booleans())
@settings(max_examples=12)
def test_so_is_the_lone_token_of_stcd(one: SplitCase, Q: int, first_pass: bool) -> None:
    check_invariant(one, STCD(Q, 0.1, fusion_client="each", first_pass=first_pass), deliveries=20)


@pytest.mark.parametrize("network", ["path", "cycle", "star", "complete"])
@pytest.mark.parametrize("aggregation", ["sum", "mean", "concat"])
def test_stcd_starts_with_a_token_true_to_the_first_parameters(
    aggregation: str, network: str
) -> None:
    """Algorithm 1, line 2. After one visit, the client has moved along its gradient of the joint
    model."""
    one, eta = case(network, aggregation=aggregation), 0.5
    first = STCD(1, eta).plan(one.data.samples, 1, one.network, one.seed).roaming.first(0, 0)
    client = one.data.clients[first]
    run = one.train(STCD(1, eta, fusion_client=first), mtcd.Stop(iterations=1))
    gradients = joint_gradients(one, slice(None))
    moved = [(one.model.representations[client], run.modules[client], gradients[first])]
    moved += [(one.model.fusion, run.fusion, gradients[-1])]
    for before, after, grads in moved:
        for old, new, g in zip(before.parameters(), after.parameters(), grads, strict=True):
            torch.testing.assert_close((old - new).detach() / eta, g, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("network", "messages"), [("path", range(3, 6)), ("cycle", [3]), ("complete", [3])]
)
def test_the_first_pass_is_on_the_ledger(network: str, messages: Any) -> None:
    """As messages between clients, each of a whole token; they are no hops of the training."""
    one = case(network)
    run = one.train(STCD(1, 0.1), mtcd.Stop(iterations=0))
    sent = run.ledger.messages("sent")
    assert sent["client_client"] in messages  # of 4 clients: as many as a walk through all takes
    assert (sent["uplink"], sent["downlink"], run.ledger.hops, run.final.iteration) == (0, 0, 0, 0)
    token = one.data.samples * 4 * 3 + sum(p.numel() for p in one.model.fusion.parameters())
    assert run.ledger.floats("sent")["client_client"] == sent["client_client"] * token
    empty = one.train(STCD(1, 0.1, first_pass=False), mtcd.Stop(iterations=0))
    assert empty.ledger.messages("charged") == {"client_client": 0, "uplink": 0, "downlink": 0}


def test_one_client_alone_needs_no_first_pass() -> None:
    run = case(clients=1).train(STCD(1, 0.1), mtcd.Stop(iterations=3))
    assert run.ledger.messages("sent")["client_client"] == 0
    assert run.final.objective < run.history.rows[0].objective


@pytest.mark.parametrize("aggregation", ["sum", "mean", "concat"])
@pytest.mark.parametrize(
    "method",
    [
        MTCD(2, 3, 2, 0.1, combine="cluster"),
        MTCD(2, 3, 2, 0.1, batch=4, combine="cluster"),
        MTCD(3, 3, 1, 0.1, combine="average"),
        MTCD(3, 3, 1, 0.1, batch=4, combine="visitors"),
        STCD(2, 0.1),
        SVFL(2, 0.1, 5),
        SVFL(2, 0.1),
    ],
    ids=lambda m: m.describe(),
)
def test_with_batch_norm_too(aggregation: str, method: Any) -> None:
    check_invariant(case(aggregation=aggregation, made=normed), method, deliveries=40)


@pytest.mark.parametrize(
    "method", [STCD(1, 0.05), MTCD(2, 4, 1, 0.05, combine="cluster")], ids=["stcd", "mtcd"]
)
def test_rounding_does_not_add_up(method: Any) -> None:
    """A sum is changed at every hop: after a thousand of them it is still the sum."""
    check_invariant(case(aggregation="sum", count=8), method, deliveries=1000, after=990)


@given(st.data())
@settings(max_examples=10)
def test_the_order_of_deliveries_does_not_matter(data: st.DataObject) -> None:
    """As long as all tokens are back before the server goes on: uploads and visits may come in any
    order."""
    one = data.draw(split_cases())
    method = data.draw(split_settings(one))
    ends = []
    for last in (False, True):
        problem = one.problem()
        parties = split_parties(method, problem, one.network, one.seed)
        parties, waiting, moments = parties.parties(), deque[Message](), 0
        outgoing = parties.opening
        while moments < 3:
            for message in outgoing:
                moments += message.to == MONITOR
                if message.to != MONITOR:
                    waiting.append(message)
            if moments < 3:
                message = waiting.pop() if last else waiting.popleft()
                outgoing = receiver(parties, message).receive(message)
        ends.append(
            [p.clone() for one_net in (*problem.nets, problem.fusion) for p in one_net.values()]
        )
    for ours, theirs in zip(*ends, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=0, atol=0)


def test_whoever_comes_first_the_copies_combine_to_the_same_numbers() -> None:
    """To the last bit: sums are formed in the order of tokens."""
    one, found = case(), []
    for order in ((0, 1, 2, 3), (3, 2, 1, 0), (2, 0, 3, 1), (1, 3, 0, 2)):
        # steps so long that rounding in their sum shows beside theta_k
        method = MTCD(4, 3, 2, 20.0)
        parties = split_parties(method, one.problem(), one.network, one.seed).parties()
        client, theta_0 = parties.clients[0], parties.server.stage.fusion.values()
        for index in order:
            H = torch.randn(12, 12, generator=torch.Generator().manual_seed(index))
            client.visit(Token(index, 0, 0, H, 0.0, slots={"theta_0": theta_0}))
        client.apply_sync(1)
        found.append(client.network.state())
    for other in found[1:]:
        assert all(torch.equal(value, other[name]) for name, value in found[0].items())
