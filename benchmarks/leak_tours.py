"""What a label holder with the key learns of the other of two parties, by tours, without the cap on
them.

``python -m benchmarks.leak_tours spambase.csv`` (label last; without a file, the stand-in of
``benchmarks.sealed``)
"""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np

from benchmarks.leak import HOLDER, A, Recording
from benchmarks.leak_attacks import basis_of, overlap
from benchmarks.sealed import from_file, stand_in
from mtcd.data.splitting import split
from mtcd.models.glm.model import Glm
from mtcd.network.topology import make_network
from mtcd.privacy.sealed.settings import SealedTours

TOURS = (1, 4, 8, 12, 14, 16, 20, 22)


def main(l2: float = 1.0) -> None:
    """Print the shares of the other's column space, and of its variance, that the opened scores
    span."""
    X, y = from_file(Path(sys.argv[1])) if len(sys.argv) > 1 else stand_in()
    data = split(X, y.astype(int), clients=2)
    problem, network = Glm("logistic", l2=l2).problem(data), make_network("complete", data.clients)
    run = Recording(SealedTours(server=False, scheme="clear"), problem, network)
    holder = run.by_number[HOLDER]
    cap = holder.holding.plan.most_tours
    # the key holder and the other party: each of them keeps to the cap
    for party in (holder.holding, holder, run.by_number[A]):
        party.plan = replace(party.plan, most_tours=None)
    other = np.asarray(problem.blocks[A])
    seen = []
    for _ in range(max(TOURS)):
        run.run(1 if seen else 2)
        seen.append(
            holder.holding.steering.scores
            - np.asarray(problem.blocks[HOLDER]) @ holder.parameters()
        )
    print(
        f"N = {len(y)}, the other party has {other.shape[1]} columns: at most {cap} tours in a "
        f"training"
    )
    for tours in TOURS:
        vectors = np.stack(seen[:tours], axis=1)
        space = overlap(vectors, other)
        variance = (
            np.square(basis_of(vectors, other.shape[1]).T @ other).sum() / np.square(other).sum()
        )
        print(
            f"{tours:3d} tours: {space:.2f} of the column space, {variance:.2f} of the variance",
            flush=True,
        )


if __name__ == "__main__":
    main()
