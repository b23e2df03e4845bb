"""What two members of sealed tours reconstruct together: ``python -m benchmarks.leak_together``.

Both follow the protocol, and put together what they have seen (seconds; without encryption, of
which the integers are the same). Three parties of 12 columns, 300 samples:

- the *server and a party*: the server has the key, so that they read the token as the party gets it
  from its neighbour, the label holder: the labels are taken off, and its scores have changed;
- the *server and the label holder*: the same for the party that the label holder gets the token
  from, with the labels besides;
- *two parties*: they guess labels from the gradients of both.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from benchmarks.leak import HOLDER, MODEL, SAMPLES, A, Recording, table
from benchmarks.leak_attacks import (
    Matrix,
    auc,
    gram,
    gram_found,
    labels_from_gradient,
    overlap,
)
from mtcd.network.topology import make_network
from mtcd.privacy.sealed.payloads import SealedToken
from mtcd.privacy.sealed.settings import SealedTours
from mtcd.protocol.party import SERVER

TOURS = 16
LAST = 2
"""The party that the label holder gets the token from."""


@dataclass
class Observed:
    """A training, and each party's gradient in its first tour."""

    run: Recording
    blocks: list[Matrix]
    labels: Matrix
    gradients: dict[int, Matrix]


def observed() -> Observed:
    """Sealed tours of three parties with a server."""
    data = table(3)
    problem, network = MODEL.problem(data), make_network("cycle", data.clients)
    run = Recording(SealedTours(scheme="clear"), problem, network)
    gradients: dict[int, Matrix] = {}
    for k in range(3):
        block = run.by_number[k].block
        block.update = _noted(block, gradients, k)
    run.run(TOURS)
    blocks = [np.asarray(X) for X in problem.blocks]
    return Observed(run, blocks, np.asarray(problem.labels), gradients)


def _noted(block: object, gradients: dict[int, Matrix], k: int) -> object:
    update = block.update  # type: ignore[attr-defined]

    def noted(products: Matrix, token: float, draws: Matrix) -> object:
        gradients.setdefault(k, products / (block.column_scales * token))  # type: ignore[attr-defined]
        return update(products, token, draws)

    return noted


def with_the_key(seen: Observed, before: int, after: int) -> tuple[list[Matrix], list[Matrix]]:
    """The changes of the token between two places of a tour, and the token at the first of them:
    what a member at both learns with the key."""
    key = seen.run.by_number[SERVER].holding.key
    opened: dict[tuple[int, int], Matrix] = {}
    scales: dict[int, float] = {}
    for message in seen.run.delivered:
        token = message.payload
        if isinstance(token, SealedToken):
            values = key.open_vector(key.vector_from_bytes(token.data.tobytes()))
            opened[token.t, token.place] = values[:SAMPLES] / token.scale
            scales[token.t] = token.scale
    tours = [t for t in scales if (t, before) in opened and (t, after) in opened]
    changes = [opened[t, after] - opened[t, before] for t in tours]
    return changes, [opened[t, before] for t in tours]


def rows() -> list[str]:
    """A line in Markdown for each pair."""
    seen = observed()
    found = []
    # the label holder also subtracts the labels, the same in every tour: differences are free of it
    changes, _ = with_the_key(seen, 0, 1)
    guess = auc(-changes[0], seen.labels)
    found.append(f"| server and party | labels, from the first token of the party | {guess:.2f} |")
    vectors = np.stack(changes[1:], axis=1) - changes[0][:, None]
    share = overlap(vectors, seen.blocks[HOLDER])
    found.append(f"| server and party | the label holder's columns | {share:.2f} |")

    changes, starts = with_the_key(seen, 2, 3)
    X = seen.blocks[LAST]
    vectors, derivatives = np.stack(changes, axis=1), np.stack(starts, axis=1)
    found.append(f"| server and label holder | a party's columns | {overlap(vectors, X):.2f} |")
    share = gram_found(gram(vectors, derivatives, X.shape[1]), X)
    found.append(f"| server and label holder | inner products of its rows | {share:.2f} |")

    one = auc(labels_from_gradient(seen.blocks[A], seen.gradients[A]), seen.labels)
    pooled = np.hstack([seen.blocks[A], seen.blocks[LAST]])
    gradients = np.concatenate([seen.gradients[A], seen.gradients[LAST]])
    both = auc(labels_from_gradient(pooled, gradients), seen.labels)
    found.append(f"| one party | labels, from its first gradient | {one:.2f} |")
    found.append(f"| two parties | labels, from both | {both:.2f} |")
    return found


if __name__ == "__main__":
    print("| together | what | found |")
    print("|---|---|---|")
    print("\n".join(rows()))
