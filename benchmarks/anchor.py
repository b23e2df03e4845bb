"""Messages of conjugate tours as a share of those of conjugate gradients on a spanning tree, to the
same gap.

`python -m benchmarks.anchor [--losses ridge,logistic] [--gap 1e-4] [--samples 200] [--clients 16]`:
below 1, the tours need fewer. In brackets the floats. Columns: kinds of networks; rows: losses,
correlations, features per sample, l2.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator

import networkx as nx
import numpy as np

import mtcd
from mtcd.core.arrays import Array

Rng = np.random.Generator
WIDTHS, PENALTIES = (0.3, 1.0, 3.0), (0.1, 10.0, 100.0)


def independent(rng: Rng, N: int, d: int) -> Array:
    """Every column for itself."""
    return rng.standard_normal((N, d))


def autoregressive(rng: Rng, N: int, d: int) -> Array:
    """Neighbouring columns have a correlation of 0.95."""
    X = rng.standard_normal((N, d))
    for j in range(1, d):
        X[:, j] = 0.95 * X[:, j - 1] + np.sqrt(1 - 0.95**2) * X[:, j]
    return X


def factors(rng: Rng, N: int, d: int) -> Array:
    """Five factors behind all columns, and some noise."""
    return rng.standard_normal((N, 5)) @ rng.standard_normal((5, d)) + 0.3 * rng.standard_normal(
        (N, d)
    )


def duplicates(rng: Rng, N: int, d: int) -> Array:
    """Every column twice, nearly."""
    half = rng.standard_normal((N, (d + 1) // 2))
    return np.hstack([half, half])[:, :d] + 0.05 * rng.standard_normal((N, d))


def labels(loss: str, score: Array, rng: Rng) -> Array:
    """For a score with noise in it."""
    score = 2 * score / score.std()
    if loss == "logistic":
        return (rng.random(len(score)) < 1 / (1 + np.exp(-score))).astype(float)
    if loss == "multinomial":
        return np.digitize(score + 0.5 * rng.standard_normal(len(score)), [-1, 1]).astype(float)
    outliers = (
        (rng.random(len(score)) < 0.1) * rng.standard_cauchy(len(score)) if loss == "huber" else 0.0
    )
    return score + 0.1 * rng.standard_normal(len(score)) + 3 * outliers


COLUMNS: dict[str, Callable[[Rng, int, int], Array]] = {
    "independent": independent,
    "AR 0.95": autoregressive,
    "factors": factors,
    "duplicates": duplicates,
}


def networks(K: int) -> dict[str, nx.Graph]:
    """One of each kind."""
    return {
        "path": nx.path_graph(K),
        "tree": nx.random_labeled_tree(K, seed=3),
        "star": nx.star_graph(K - 1),
        "cycle": nx.cycle_graph(K),
        "grid": nx.convert_node_labels_to_integers(nx.grid_2d_graph(4, K // 4)),
        "dense": nx.gnp_random_graph(K, 0.5, seed=1),
    }


def shares(data: mtcd.VerticalData, model: mtcd.Glm, gap: float) -> Iterator[str]:
    """One network after the other; what conjugate gradients take comes first."""
    tree = mtcd.train(data, model, "path", mtcd.TreeCG(), mtcd.Stop(gap=gap, iterations=5000)).final
    yield f"{tree.iteration:.0f}"
    limit = mtcd.Stop(gap=gap, iterations=3 * tree.messages["client_client"] + 1000)
    for graph in networks(len(data.clients)).values():
        named = nx.relabel_nodes(graph, dict(enumerate(data.clients)))
        run = mtcd.train(
            data, model, named, mtcd.STCD(walk="tour", acceleration="conjugate"), limit
        )
        ours = [run.final.messages["client_client"] / tree.messages["client_client"]]
        ours += [run.final.floats["client_client"] / tree.floats["client_client"]]
        yield f"{ours[0]:.2f} ({ours[1]:.2f})" if run.status == "converged" else "not reached"


def main() -> None:
    """The whole table, as Markdown."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--losses", default="ridge,logistic,huber,multinomial")
    parser.add_argument("--gap", type=float, default=1e-4)
    parser.add_argument("--samples", type=int, default=200)
    parser.add_argument("--clients", type=int, default=16)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    print("| loss | columns | d/N | l2 | iterations |", " | ".join(networks(given.clients)), "|")
    print("|---" * (5 + len(networks(given.clients))) + "|")
    for loss in given.losses.split(","):
        for kind, make in COLUMNS.items():
            for width in WIDTHS:
                rng = np.random.default_rng(given.seed)
                X = make(rng, given.samples, int(width * given.samples))
                y = labels(loss, X @ rng.standard_normal(X.shape[1]), rng)
                data = mtcd.split(X, y, clients=given.clients)
                for l2 in PENALTIES:
                    row = shares(data, mtcd.Glm(loss, l2=l2), given.gap)
                    print(
                        f"| {loss} | {kind} | {width} | {l2:g} |", " | ".join(row), "|", flush=True
                    )


if __name__ == "__main__":
    main()
