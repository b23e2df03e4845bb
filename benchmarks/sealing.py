"""Sealing: CPU time, bytes and noise budget of a visit and its operations, by samples and columns.

``python -m benchmarks.sealing [--check | --histograms | --checks]``; ``--check`` fails where a visit at
N=5000, d_k=50 takes more than 100 ms, or a token more than 0.5 MB. CPU time of one process, the
best of seven visits for each operation. ``--histograms``: what trees would need, encrypted sums of
the derivatives of samples by column and bin. ``--checks``: what the column costs that checks the
key holder's answers.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from time import process_time
from typing import Any

import numpy as np

from mtcd.privacy.sealed.bfv.cipher import find
from mtcd.privacy.sealed.bfv.fixed_point import TokenScale, fix_matrix
from mtcd.privacy.sealed.bfv.parameters import choose_parameters
from mtcd.privacy.sealed.check_column import draw_weights, with_check, without_check

COLUMNS_OF_CHECK = 1
SAMPLES, COLUMNS = (1000, 3700, 5000, 20_000), (5, 28, 50, 200)
ONCE = ("keys", "read keys", "encode")
VISITS_PER_TOUR = 8


class Stopwatch:
    """The least CPU milliseconds of each operation."""

    def __init__(self) -> None:
        self.least: dict[str, float] = {}

    def __call__(self, name: str, operation: Callable[..., Any], *given: Any) -> Any:
        start = process_time()
        result = operation(*given)
        spent = (process_time() - start) * 1e3
        self.least[name] = min(spent, self.least.get(name, spent))
        return result

    @property
    def visit(self) -> float:
        return sum(spent for name, spent in self.least.items() if name not in ONCE)


def measure(
    samples: int, columns: int, rounds: int = 7, values: Any = None, checks: int = COLUMNS_OF_CHECK
) -> dict[str, Any]:
    """One client's visits, and what they cost; ``values``: its columns, random unless given;
    ``checks``: 0 without the column that checks answers."""
    draw = np.random.default_rng(0)
    scheme, watch = find("bfv"), Stopwatch()
    chosen = choose_parameters(samples, [columns + checks], VISITS_PER_TOUR)
    key = watch("keys", scheme.generate, chosen)
    sealer = watch("read keys", scheme.sealer, key.public)
    given = draw.normal(size=(samples, columns)) if values is None else values
    X, token = fix_matrix(given, chosen), TokenScale(chosen, 8.0)
    columns_sent = X.integers
    if checks:
        weights = draw_weights(columns, chosen.plain_modulus)
        columns_sent = with_check(X.integers, weights, chosen.plain_modulus)
    matrix = watch("encode", sealer.encode, columns_sent, checks)
    g, change = (
        token.integers(draw.uniform(-1, 1, samples)),
        token.integers(draw.uniform(-0.1, 0.1, samples)),
    )
    sent = sealer.to_bytes(sealer.encrypt(g))
    for _ in range(rounds):
        vector = watch("read token", sealer.vector_from_bytes, sent)
        product = watch("product", sealer.product, vector, matrix)
        masked, mask = watch("mask", sealer.mask, product)
        question = watch("write product", sealer.to_bytes, masked)
        asked = watch("read product", key.product_from_bytes, question)
        answer = watch("decrypt", key.open_product, asked)
        found = watch("unmask", sealer.unmask, answer, mask)
        if checks:
            found = watch("check", without_check, found, weights, chosen.plain_modulus)
        changed = watch("add", sealer.add_plain, vector, change)
        hidden = watch("rerandomise", sealer.rerandomise, changed)
        sent_on = watch("write token", sealer.to_bytes, hidden)
        assert np.array_equal(found, X.integers.T @ g), "the product is wrong"
    return {
        "chosen": chosen,
        "operations": watch.least,
        "visit": watch.visit,
        "token": len(sent_on),
        "question": len(question),
        "keys": len(key.public),
        "misses": chosen.miss_bits(chosen.spared()),
    }


def main(
    samples: tuple[int, ...] = SAMPLES,
    columns: tuple[int, ...] = COLUMNS,
    rounds: int = 7,
    check: bool = False,
) -> None:
    """One line for each number of samples and of columns."""
    print(
        "     N  d_k      n   t  diagonals  visit ms  product ms  encode ms  token KB  product KB  "
        "keys MB  misses"
    )
    for count in samples:
        for width in columns:
            found = measure(count, width, rounds)
            chosen, spent = found["chosen"], found["operations"]
            print(
                f"{count:6d} {width:4d} {chosen.degree:6d} {chosen.plain_modulus.bit_length():3d} "
                f"{chosen.layout(width).diagonals:10d} {found['visit']:9.1f} "
                f"{spent['product']:11.1f} "
                f"{spent['encode']:10.0f} {found['token'] / 1e3:9.0f} "
                f"{found['question'] / 1e3:11.0f} "
                f"{found['keys'] / 1e6:8.2f} {found['misses']:7.0f}"
            )
            if (count, width) == (5000, 50):
                print("       " + ", ".join(f"{name} {value:.1f}" for name, value in spent.items()))
                if check and (found["visit"] > 100 or found["token"] > 500_000):
                    sys.exit(
                        "A visit at N=5000, d_k=50 takes more than 100 ms, or a token more than "
                        "0.5 MB."
                    )


def histograms(samples: int = 5000, columns: int = 50, bins: int = 32) -> None:
    """Trees: the bins of the root are encoded once; each further node has samples, and so a matrix,
    of its own. Of the two nodes of a split one is computed, the other is the difference; the last
    split needs no histograms of its nodes.
    """
    numbers = np.random.default_rng(0).integers(0, bins, (samples, columns))
    indicators = (numbers[:, :, None] == np.arange(bins)).reshape(samples, -1).astype(float)
    spent = measure(samples, columns * bins, 1, indicators, checks=0)["operations"]
    root, encode = (spent[name] / 1e3 for name in ("product", "encode"))
    print(
        f"N={samples}, {columns} columns of {bins} bins: encode {encode:.2f} s, sums of one node "
        f"{root:.2f} s of CPU"
    )
    for leaves in (2, 4, 8, 31):
        # complete trees; one grown leaf by leaf
        further = max(0, leaves // 2 - 1) if leaves < 31 else leaves - 2
        print(f"a tree of {leaves} leaves: {root + further * (root + encode):.1f} s")


def checks(samples: tuple[int, ...] = (1000, 3700, 5000)) -> None:
    """A visit with and without the column that checks answers."""
    for count in samples:
        for width in (50, 200):
            without, with_it = (measure(count, width, 15, None, n)["visit"] for n in (0, 1))
            more = with_it / without - 1
            print(
                f"{count:6d} {width:4d} {without:6.1f} ms, with the check {with_it:6.1f}: {more:+.0%}"
            )


if __name__ == "__main__":
    if "--checks" in sys.argv[1:]:
        checks()
    elif "--histograms" in sys.argv[1:]:
        histograms()
    else:
        main(check="--check" in sys.argv[1:])
