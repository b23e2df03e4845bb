"""What must hold of what the parties have kept, whatever befell them."""

from __future__ import annotations

import shutil
from typing import Any

import numpy as np

from faulty.federation import Faulty
from mtcd.federation.credentials.bundle import read_bundle
from mtcd.federation.delivery.journal import FileJournal
from mtcd.federation.delivery.reliable_party import ReliableParty
from mtcd.federation.names import SERVER as SERVER_NAME
from mtcd.federation.node.folder import AGREED, JOURNAL
from mtcd.federation.node.log import Log
from mtcd.federation.node.opening import Agreed
from mtcd.federation.participant.keeping import Summary, read_summary
from mtcd.federation.participant.kinds import make_participant
from mtcd.federation.recovery.choose import make_reliable_party
from mtcd.federation.recovery.iteration_client import IterationClient
from mtcd.methods.mtcd.server import TokenClient, TokenServer
from mtcd.models.glm.optimum.optimum import optimum
from mtcd.models.glm.party.block import read_block
from mtcd.protocol.party import SERVER
from mtcd.protocol.token import Token

CLOSE = 1e-9
Thetas = list[Any]


def parties(faulty: Faulty) -> dict[int, ReliableParty]:
    """Everybody as its journal says; nobody may run, and nothing that they kept is touched."""
    made = {}
    for name in faulty.names:
        bundle, run = read_bundle(faulty.bundles / name), faulty.run_folder(name)
        copy = faulty.folder / "looked at" / name
        shutil.rmtree(copy, ignore_errors=True)
        copy.mkdir(parents=True)
        for path in run.glob(f"{JOURNAL}*"):
            shutil.copy(path, copy)
        participant = make_participant(
            bundle, {} if name == SERVER_NAME else {"data": faulty.processes.tables[name]}
        )
        role = participant.role(Agreed.unpacked((run / AGREED).read_bytes()), Log(name, None))
        number = SERVER if name == SERVER_NAME else faulty.parties.index(name)
        made[number] = make_reliable_party(
            number, role.parties, FileJournal(copy / JOURNAL), bundle.config.network
        )
    return made


def check_delivery(faulty: Faulty) -> Thetas:
    """The token, or the server, has the aggregate of what the parties hold. Returns that.

    Not where it takes more than that to tell: with dcpa, acceleration and optimal sync, the optimum
    tells.
    """
    found = parties(faulty)
    if not all(type(one.party) is TokenClient for number, one in found.items() if number != SERVER):
        return []
    if SERVER not in found:
        token, held = lone_token(found)
        aggregate, penalty = token.aggregate, token.penalty
    else:
        server = found[SERVER].party
        if not isinstance(server, TokenServer) or server.plan.batches.size is not None:
            return []  # it sums up again what it is told in every round
        for reliable in found.values():
            reliable.policy.learn_terms(found[SERVER].terms)
            if isinstance(reliable.policy, IterationClient) and reliable.party.t < server.t:
                reliable.policy.roll_back()
        aggregate, penalty = server.aggregate, server.penalty
        held = [_at(found[k].party, server.t) for k in range(faulty.plan.parties)]
    problem = faulty.plan.problem
    np.testing.assert_allclose(aggregate, problem.aggregate(held), rtol=0, atol=CLOSE)
    weights = sum(problem.client(k).penalty(theta) for k, theta in enumerate(held))
    np.testing.assert_allclose(penalty, weights, rtol=0, atol=CLOSE)
    return held


def _at(client: Any, t: int) -> Any:
    """theta_k at the start of iteration t."""
    assert client.t <= t
    return client.theta[0] if client.t == t else client.combined[0]


def lone_token(found: dict[int, ReliableParty]) -> tuple[Token, Thetas]:
    """The one token that counts and is still to be visited with, and what clients hold."""
    terms: dict[int, int] = {}
    for reliable in found.values():
        terms |= reliable.terms
    for reliable in found.values():
        reliable.policy.learn_terms(terms)
    tokens = [
        envelope.message.payload
        for reliable in found.values()
        for envelope in reliable.outbox.values()
        if isinstance(envelope.message.payload, Token)
        and envelope.term == max(terms, default=0)
        and not found[envelope.to].is_duplicate(envelope)
    ]
    assert len(tokens) == 1, f"{len(tokens)} tokens count"
    return tokens[0], [found[k].party.parameters() for k in sorted(found)]  # type: ignore[attr-defined]


def check_end(faulty: Faulty, gap: float, away: dict[int, Any] | None = None) -> list[Summary]:
    """All ended at the same moment, near the optimum; of those who are ``away`` the blocks are what
    they are."""
    away = away or {}
    if faulty.plan.server:
        check_delivery(faulty)
    summaries = [
        read_summary(faulty.run_folder(name))
        for k, name in enumerate(faulty.names)
        if k not in away
    ]
    moments = {(one.status, one.iterations, one.syncs) for one in summaries}
    assert len(moments) == 1, moments
    thetas = [
        away[k] if k in away else read_block(faulty.run_folder(name)).theta
        for k, name in enumerate(faulty.parties)
    ]
    problem = faulty.plan.glm.problem(faulty.plan.data)
    best = best_objective(faulty, away)
    reached = problem.evaluate(thetas)
    assert -1e-12 <= (reached - best) / best <= gap, f"the gap is {(reached - best) / best:.3g}"
    return summaries


def check_trees(faulty: Faulty) -> None:
    """All ended at the same moment, and the loss of the blocks that they keep is far below that of
    the start."""
    summaries = [read_summary(faulty.run_folder(name)) for name in faulty.names]
    assert len({(one.status, one.iterations, one.syncs) for one in summaries}) == 1, summaries
    problem, data = faulty.plan.problem, faulty.plan.data
    blocks = [read_block(faulty.run_folder(name)) for name in faulty.parties]
    margins = [block.part.margins(X) for block, X in zip(blocks, data.blocks, strict=True)]  # type: ignore[union-attr]
    start = problem.read_off(np.zeros(problem.samples), 0.0)
    assert problem.read_off(np.sum(margins, axis=0), 0.0) < 0.5 * start


def best_objective(faulty: Faulty, away: dict[int, Any]) -> float:
    """With the blocks of those who are away as they are; these only where the loss is a sum of
    squares."""
    problem = faulty.plan.glm.problem(faulty.plan.data)
    here = [k for k in range(faulty.plan.parties) if k not in away]
    labels = problem.labels
    for k, theta in away.items():
        labels = labels - problem.client(k).represent(theta)
    found = optimum(
        [problem.blocks[k] for k in here],
        labels,
        problem.loss,
        [problem.penalties[k] for k in here],
    )
    return found.value + sum(problem.client(k).penalty(theta) for k, theta in away.items())
