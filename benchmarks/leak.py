"""What curious parties can reconstruct from what they really saw: ``python -m benchmarks.leak``
(some minutes).

Trainings run in this process; every message that is delivered to the attacker is recorded, with
what the attacker computes itself. The attacks are in ``leak_attacks.py``. A is a party without
labels of its own, B the label holder's neighbour that is attacked. Writes a table and a picture for
docs/leaks.md.
"""

from __future__ import annotations

import argparse
from collections import deque
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.leak_attacks import (
    Matrix,
    auc,
    gram,
    gram_found,
    labels_from_gradient,
    overlap,
    squared_correlation,
)
from mtcd.data.splitting import split
from mtcd.data.vertical import VerticalData
from mtcd.methods.method import Method
from mtcd.methods.mtcd.mtcd import STCD
from mtcd.methods.svfl.svfl import SVFL, Shared
from mtcd.models.glm.model import Glm, LinearProblem
from mtcd.network.topology import make_network
from mtcd.privacy.masked.masked import with_masks
from mtcd.privacy.sealed.settings import SealedTours
from mtcd.protocol.gathering import Fresh
from mtcd.protocol.party import MONITOR, SERVER, Message
from mtcd.protocol.token import Token

COLUMNS = 12
SAMPLES = 300
L2 = 0.1
MODEL = Glm("logistic", l2=L2)
HOLDER, A, B = 0, 1, 0  # B is attacked by A and the server; where the holder attacks, it attacks A
LENGTHS = (1, 2, 4, 8, 16, 32, 64, 128)


@dataclass
class Seen:
    """What an attacker attributes to its victim: vectors of N numbers, one for each observation,
    and more."""

    vectors: list[Matrix] = field(default_factory=list)
    derivatives: list[Matrix] = field(default_factory=list)
    """Where the attacker knows the derivative of the loss at a change of the victim: one for each
    vector."""
    scores: Matrix | None = None
    """Its guess of the victim's scores at the end."""
    labels: Matrix | None = None
    """Its guess of the labels."""


@dataclass(frozen=True)
class Row:
    """One line of the table."""

    mode: str
    attacker: str
    parties: int
    labels: float
    scores: float
    columns: float
    grams: float
    permuted: float
    over_time: tuple[tuple[int, float], ...]

    def line(self) -> str:
        """In Markdown."""
        numbers = (self.labels, self.scores, self.columns, self.grams, self.permuted)
        return (
            f"| {self.mode} | {self.attacker} | {self.parties} | "
            + " | ".join(f"{x:.2f}" for x in numbers)
            + " |"
        )


def table(parties: int, seed: int = 0) -> VerticalData:
    """Independent columns, and labels that depend on all of them."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((SAMPLES, COLUMNS * parties))
    y = (
        X @ rng.standard_normal(X.shape[1]) / np.sqrt(X.shape[1]) * 2 + rng.logistic(size=SAMPLES)
        > 0
    )
    return split(X, y.astype(int), clients=parties)


class Recording:
    """A training in this process, message by message; ``delivered`` gets a copy of each."""

    def __init__(self, method: Method, problem: LinearProblem, network: Any) -> None:
        self.parties = method.parties(problem, network, 3)
        self.by_number: dict[int, Any] = {
            **dict(enumerate(self.parties.clients)),
            SERVER: self.parties.server,
        }
        self.delivered: list[Message] = []
        self._waiting: deque[Message] = deque(self.parties.opening)

    def run(self, iterations: int) -> None:
        """Until so many progress reports."""
        while iterations >= 0 and self._waiting:
            message = self._waiting.popleft()
            if message.to == MONITOR:
                iterations -= 1
                continue
            self.delivered.append(replace(message, payload=_copied(message.payload)))
            self._waiting.extend(self.by_number[message.to].receive(message))


def _copied(payload: Any) -> Any:
    return (
        replace(payload, aggregate=payload.aggregate.copy())
        if isinstance(payload, Token)
        else payload
    )


def open_party(parties: int, hops: int) -> tuple[Seen, Any]:
    """STCD: A compares the token that it sent with the one that came back, where only B had it in
    between."""
    data = table(parties)
    problem, network = (
        MODEL.problem(data),
        make_network("path" if parties == 2 else "cycle", data.clients),
    )
    run = Recording(STCD(stepsize=1.0 / SAMPLES), problem, network)
    run.run(hops)
    seen, sent, between = Seen(labels=problem.labels), None, []
    received, own = np.zeros(SAMPLES), np.zeros(SAMPLES)
    for message in run.delivered:
        token = message.payload
        if message.to == A and message.sender != A:
            received = token.aggregate
            if sent is not None and between == [B]:
                change = received - sent
                if parties == 2:  # A knows B's scores, so also how the regulariser shrinks them
                    change = change + L2 / SAMPLES * (sent - own)
                    seen.derivatives.append(problem.loss.gradient(sent, problem.labels))
                seen.vectors.append(change)
        if message.sender == A and message.to != A:
            sent, between = token.aggregate, []
            own = own + sent - received
        if message.to != A:
            between.append(message.to)
    seen.scores = received - problem.blocks[A] @ run.by_number[A].parameters()
    return seen, (problem, run)


def server_of_rounds(parties: int, rounds: int, masked: bool) -> tuple[Seen, Any]:
    """SVFL: the server reads the uploads of B, or, with masks, can only use the sums."""
    data = table(parties)
    problem, network = MODEL.problem(data), make_network("complete", data.clients)
    method = SVFL(stepsize=0.5 / (SAMPLES * parties))
    run = Recording(with_masks(method) if masked else method, problem, network)
    run.run(rounds)
    uploads = [one.payload for one in run.delivered if one.to == SERVER and one.sender == B]
    sums = [
        one.payload.aggregate
        for one in run.delivered
        if isinstance(one.payload, Shared) and one.to == A
    ]
    own = [one.representation for one in uploads if isinstance(one, Fresh)]
    if masked:  # the uploads of B are words that look random: tried too, see main()
        own = [one.words[:-1].astype(float) for one in uploads if hasattr(one, "words")]
    vectors = sums[1:] if masked else own
    return Seen(vectors, [], vectors[-1], sums[-1]), (problem, run, own)


def party_of_rounds(parties: int, rounds: int) -> tuple[Seen, Any]:
    """SVFL, masked or not: A subtracts its own part from every sum, and has the labels."""
    data = table(parties)
    problem, network = MODEL.problem(data), make_network("complete", data.clients)
    stepsize = 0.5 / (SAMPLES * parties)
    run = Recording(SVFL(stepsize=stepsize), problem, network)
    run.run(rounds)
    sums = [
        one.payload.aggregate
        for one in run.delivered
        if isinstance(one.payload, Shared) and one.to == A
    ]
    own = [
        one.payload.representation for one in run.delivered if one.to == SERVER and one.sender == A
    ]
    others = [z - h for z, h in zip(sums[1:], own, strict=False)]
    before = [np.zeros(SAMPLES), *others[:-1]]
    # without the shrinkage
    changes = [b - a + stepsize * L2 * a for a, b in zip(before, others, strict=True)]
    derivatives = [problem.loss.gradient(z, problem.labels) for z in sums[: len(changes)]]
    return Seen(changes, derivatives, others[-1], problem.labels), (problem, run)


def sealed(parties: int, tours: int, server: bool) -> tuple[Seen, Seen, Any]:
    """Sealed tours: what A saw, and what the key holder did (the server; the label holder, who
    attacks A)."""
    data = table(parties)
    problem, network = MODEL.problem(data), make_network("complete", data.clients)
    run = Recording(SealedTours(server=server), problem, network)
    gradients: dict[int, list[Matrix]] = {k: [] for k in range(parties)}
    added: list[Matrix] = []
    for k in range(parties):
        block = run.by_number[k].block
        block.update = _recording_update(block, gradients[k], added if k == HOLDER else [])
    holding = run.by_number[SERVER if server else HOLDER].holding
    opened: list[Matrix] = []
    holding.end_tour = _recording_end(holding, opened)
    run.run(tours)
    tokens = [one.payload for one in run.delivered if one.to == A and hasattr(one.payload, "scale")]
    bytes_seen = [
        np.frombuffer(one.data.tobytes(), "<u4", SAMPLES, 4096).astype(float) for one in tokens
    ]
    X = np.asarray(problem.blocks[A])
    party = Seen(bytes_seen, [], bytes_seen[-1], labels_from_gradient(X, gradients[A][0]))
    changes = opened if server else [all_ - own for all_, own in zip(opened, added, strict=False)]
    total = np.sum(changes, axis=0)
    return party, Seen(changes, [], total, np.sum(opened, axis=0)), (problem, run)


def _recording_update(block: Any, gradients: list[Matrix], added: list[Matrix]) -> Any:
    update = block.update

    def recorded(products: Matrix, token: float, draws: Matrix) -> Any:
        gradients.append(products / (block.column_scales * token))
        found = update(products, token, draws)
        added.append(found[:SAMPLES] / token)
        return found

    return recorded


def _recording_end(holding: Any, opened: list[Matrix]) -> Any:
    end_tour = holding.end_tour

    def recorded(found: Any, start: Any, label_sum: Any) -> Any:
        opened.append((found - start)[:SAMPLES] / holding.scale)
        return end_tour(found, start, label_sum)

    return recorded


def measured(
    mode: str,
    attacker: str,
    parties: int,
    seen: Seen,
    problem: LinearProblem,
    run: Recording,
    victim: int = B,
) -> Row:
    """The measures of what an attacker has seen of the victim."""
    X = np.asarray(problem.blocks[victim])
    permuted = X[np.random.default_rng(1).permutation(len(X))]
    vectors = np.stack(seen.vectors, axis=1) if seen.vectors else np.zeros((SAMPLES, 0))
    derivatives = np.stack(seen.derivatives, axis=1) if seen.derivatives else np.zeros((0, 0))
    lengths = [n for n in LENGTHS if n < vectors.shape[1]] + [vectors.shape[1]]
    true_scores = X @ run.by_number[victim].parameters()
    return Row(
        mode,
        attacker,
        parties,
        0.5 if seen.labels is None else auc(seen.labels, problem.labels),
        0.0 if seen.scores is None else squared_correlation(seen.scores, true_scores),
        overlap(vectors, X),
        gram_found(gram(vectors, derivatives, COLUMNS), X),
        overlap(vectors, permuted),
        tuple((n, overlap(vectors[:, :n], X)) for n in lengths),
    )


def rows(counts: tuple[int, ...], rounds: int, tours: int) -> list[Row]:
    """All lines of the table."""
    found: list[Row] = []
    for K in counts:
        seen, (problem, run) = open_party(K, 40 * rounds if K == 2 else 60 * K * rounds // 4)
        found.append(measured("open", "party, tokens", K, seen, problem, run))
        seen, (problem, run) = party_of_rounds(K, rounds)
        found.append(measured("open or masked", "party, svfl", K, seen, problem, run))
        seen, (problem, run, _) = server_of_rounds(K, rounds, masked=False)
        found.append(measured("open", "server, svfl", K, seen, problem, run))
        if K > 2:
            seen, (problem, run, own) = server_of_rounds(K, rounds, masked=True)
            found.append(measured("masked", "server, svfl", K, seen, problem, run))
            found.append(
                measured(
                    "masked",
                    "server, from B's upload",
                    K,
                    replace(seen, vectors=own, scores=own[-1]),
                    problem,
                    run,
                )
            )
        party, holder, (problem, run) = sealed(K, tours, server=True)
        found.append(measured("sealed", "party", K, party, problem, run))
        found.append(measured("sealed", "server (key)", K, holder, problem, run))
        party, holder, (problem, run) = sealed(K, COLUMNS // 2, server=False)
        found.append(
            measured(
                "sealed, no server",
                "label holder (key)",
                K,
                replace(holder, labels=problem.labels),
                problem,
                run,
                A,
            )
        )
        for row in found[-8:]:
            print(row.line(), flush=True)
    return found


def picture(found: list[Row], path: Path) -> None:
    """The share of the victim's columns against the number of observations."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    counts = sorted({row.parties for row in found})
    colours = {
        label: f"C{i}"
        for i, label in enumerate(
            dict.fromkeys((one.mode, one.attacker) for one in reversed(found))
        )
    }
    figure, axes = plt.subplots(1, len(counts), figsize=(4 * len(counts), 3.4), sharey=True)
    for axis, K in zip(np.atleast_1d(axes), counts, strict=True):
        for row in (one for one in found if one.parties == K and "upload" not in one.attacker):
            style = {"open": "-", "masked": "--", "sealed": ":"}[row.mode.split()[0].rstrip(",")]
            axis.plot(
                *zip(*row.over_time, strict=True),
                style,
                marker=".",
                color=colours[row.mode, row.attacker],
                label=f"{row.mode}: {row.attacker}",
            )
        axis.axhline(COLUMNS / SAMPLES, color="0.7", lw=0.8)
        axis.set(xscale="log", title=f"{K} parties", xlabel="observations", ylim=(0, 1.05))
    np.atleast_1d(axes)[0].set_ylabel("share of a party's column space")
    np.atleast_1d(axes)[-1].legend(fontsize=6, loc="center left", bbox_to_anchor=(1, 0.5))
    figure.tight_layout()
    figure.savefig(path, dpi=150)


def main() -> None:
    """The table, and the picture."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--parties", type=int, nargs="+", default=[2, 3, 8])
    parser.add_argument("--rounds", type=int, default=300)
    parser.add_argument("--tours", type=int, default=16)
    parser.add_argument("--picture", type=Path)
    given = parser.parse_args()
    found = rows(tuple(given.parties), given.rounds, given.tours)
    if given.picture:
        picture(found, given.picture)


if __name__ == "__main__":
    main()
