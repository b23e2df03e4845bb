"""Small problems, networks and settings for the tests, chosen by hypothesis or by hand."""

from __future__ import annotations

from dataclasses import dataclass

import networkx as nx
import numpy as np
import scipy.sparse as sp
from hypothesis import strategies as st

from mtcd.data.splitting import split
from mtcd.data.vertical import VerticalData
from mtcd.methods.mtcd.mtcd import MTCD
from mtcd.models.glm.model import Glm
from mtcd.network.edges import network_from_edges
from mtcd.network.topology import Network
from mtcd.network.walks import WALKS

MODELS = (
    Glm("ridge", alpha=0.7),
    Glm("linear", l1=0.3),
    Glm("linear", l1=0.2, l2=0.5, intercept=True),
    Glm("ridge", alpha=2.0, intercept=True),
    Glm("logistic", l1=0.1, l2=0.2),
    Glm("logistic", l2=0.2, intercept=True),
    Glm("multinomial", l1=0.05, l2=0.3),
    Glm("multinomial", intercept=True),
    Glm("huber", delta=0.8, l2=0.4),
    Glm("squared-hinge", l1=0.2, l2=0.1),
    Glm("logistic", l2=0.3, class_weight={"0": 0.5, "1": 2.0}),
)

ALL = ("average", "cluster", "visitors", "optimal")


@dataclass(frozen=True)
class Case:
    data: VerticalData
    model: Glm
    network: Network
    seed: int

    def __repr__(self) -> str:
        shapes = [block.shape for block in self.data.blocks]
        return f"Case({self.model}, blocks={shapes}, neighbours={self.network.neighbours}, seed={self.seed})"


def make_data(
    model: Glm,
    samples: int,
    widths: list[int],
    seed: int,
    sparse: bool = False,
    weighted: bool = False,
) -> VerticalData:
    """Random features in blocks of these widths, labels that suit the model, and weights of
    samples, some of them 0."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((samples, sum(widths)))
    if sparse:
        X = sp.csr_array(X * (rng.random(X.shape) < 0.4))
    score = X @ rng.standard_normal(sum(widths)) + 0.1 * rng.standard_normal(samples)
    labels = score
    if model.kind in ("logistic", "squared-hinge"):
        labels = (score > np.median(score)).astype(float)
    if model.kind == "multinomial":
        labels = np.array(["a", "b", "c"])[np.argsort(np.argsort(score)) * 3 // samples]
    bounds = np.cumsum([0, *widths])
    clients = {f"c{k}": list(range(bounds[k], bounds[k + 1])) for k in range(len(widths))}
    weights = (
        np.where(rng.random(samples) < 0.1, 0.0, rng.exponential(size=samples))
        if weighted
        else None
    )
    return split(X, labels, clients, weights=weights)


@st.composite
def networks(draw: st.DrawFn, size: int, connected: bool = False) -> Network:
    pairs = [(i, j) for i in range(size) for j in range(i)]
    edges = draw(st.lists(st.sampled_from(pairs), unique=True)) if pairs else []
    if connected:  # a random tree underneath
        edges += [(i, draw(st.integers(0, i - 1))) for i in range(1, size)]
    return network_from_edges(edges, [f"c{k}" for k in range(size)])


@st.composite
def cases(draw: st.DrawFn, connected: bool = False) -> Case:
    model = draw(st.sampled_from(MODELS))
    widths = draw(st.lists(st.integers(1, 5), min_size=2, max_size=6))
    seed = draw(st.integers(0, 10_000))
    data = make_data(
        model, draw(st.integers(6, 14)), widths, seed, draw(st.booleans()), draw(st.booleans())
    )
    return Case(data, model, draw(networks(len(widths), connected)), seed)


@st.composite
def mtcd_settings(
    draw: st.DrawFn, case: Case, rules: tuple[str, ...] = ("average", "cluster", "visitors")
) -> MTCD:
    size = case.network.size
    combine = draw(st.sampled_from(rules))
    touring = combine == "cluster" or case.network.connected
    fewest = nx.number_connected_components(case.network.graph) if combine == "cluster" else 1
    return MTCD(
        tokens=draw(st.integers(fewest, size if combine == "cluster" else size + 2)),
        hops=draw(st.integers(1, 5)),
        local_updates=draw(st.integers(1, 4)),
        stepsize=draw(st.sampled_from([1e-3, 5e-3])),
        batch=None
        if combine == "optimal"
        else draw(st.sampled_from([None, 1, 3, case.data.samples])),
        combine=combine,
        walk=draw(st.sampled_from([walk for walk in WALKS if touring or "tour" not in walk])),
    )
