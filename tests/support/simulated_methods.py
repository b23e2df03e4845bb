"""A case of every method for the simulator, and the faults that all of them must survive."""

from collections.abc import Callable
from typing import Any

from mtcd.methods.dcpa.dcpa import DCPA
from mtcd.methods.method import Method
from mtcd.methods.mtcd.mtcd import MTCD, STCD
from mtcd.methods.svfl.svfl import SVFL
from mtcd.methods.tree_cg.tree_cg import TreeCG
from mtcd.models.glm.model import Glm
from mtcd.network.changes import with_changes
from mtcd.network.topology import Change, make_network
from mtcd.protocol.party import Parties
from problems import make_data

RIDGE, LASSO = Glm("ridge", alpha=0.7), Glm("linear", l1=0.3)


SIZES = [2, 1, 3, 2, 2]


CLUSTERS = [[0, 1, 2], [3, 4]]


CHANGES = [Change(7, leave=(1,)), Change(15, leave=(3,)), Change(24, join=(1, 3))]


def tour(acceleration: str, **settings: Any) -> Method:
    return MTCD(
        clusters=CLUSTERS, hops=4, stepsize=0.02, walk="tour", acceleration=acceleration, **settings
    )


def lone_tour(acceleration: str) -> Method:
    return STCD(stepsize=0.02, local_updates=3, walk="tour", acceleration=acceleration)


CASES: dict[str, tuple[Method, Glm, list[Change]]] = {
    "conjugate": (tour("conjugate"), RIDGE, []),
    "adaptive": (tour("conjugate", adaptive=True), RIDGE, []),
    "momentum": (tour("momentum"), LASSO, []),
    "anderson": (tour("anderson", depth=2), RIDGE, []),
    "lone conjugate": (lone_tour("conjugate"), RIDGE, []),
    "lone adaptive": (
        STCD(walk="tour", acceleration="conjugate").with_stepsize(1e-3),
        RIDGE,
        [],
    ),
    "twin": (STCD(walk="tour", acceleration="twin").with_stepsize(1e-3), RIDGE, []),
    "twin changes": (
        STCD(walk="tour", acceleration="twin").with_stepsize(1e-3),
        RIDGE,
        CHANGES,
    ),
    "lone momentum": (lone_tour("momentum"), LASSO, []),
    "lone anderson": (lone_tour("anderson"), RIDGE, []),
    "optimal": (MTCD(clusters=CLUSTERS, hops=3, stepsize=0.02, combine="optimal"), RIDGE, []),
    "memory": (
        MTCD(clusters=CLUSTERS, hops=4, stepsize=0.02, walk="tour", combine="memory"),
        RIDGE,
        [],
    ),
    "memory, solved blocks": (
        MTCD(
            clusters=CLUSTERS,
            hops=4,
            walk="tour",
            combine="memory",
            local_solver="newton",
            stepsize=1.0,
        ),
        Glm("logistic", l2=0.3),
        [],
    ),
    "optimal, crossing": (MTCD(tokens=3, hops=3, stepsize=0.02, combine="optimal"), RIDGE, []),
    "dcpa B": (DCPA(stepsize=0.05), RIDGE, []),
    "dcpa A": (DCPA(stepsize=0.05, variant="A"), LASSO, []),
    "tree-cg": (TreeCG(), RIDGE, []),
    "changes": (MTCD(tokens=2, hops=3, stepsize=0.02), RIDGE, CHANGES),
    "lone changes": (STCD(stepsize=0.02), RIDGE, CHANGES),
    "lone accelerated changes": (lone_tour("momentum"), RIDGE, CHANGES),
    "svfl conjugate": (SVFL(stepsize=0.02, acceleration="conjugate"), RIDGE, []),
    "svfl adaptive": (SVFL(stepsize=1e-3, acceleration="conjugate", adaptive=True), RIDGE, []),
    "svfl momentum": (SVFL(stepsize=0.01, acceleration="momentum"), LASSO, []),
    "svfl anderson changes": (SVFL(stepsize=0.01, acceleration="anderson"), RIDGE, CHANGES),
    "svfl changes": (SVFL(stepsize=0.01), RIDGE, CHANGES),
}


CROSSING = {"optimal, crossing": 1e-6, "changes": 1e-9}
"""Tokens cross: what they add up at a client rests on who comes first, up to rounding, which
optimal sync enlarges."""


def making_parties(name: str) -> Callable[[], Parties]:
    method, model, changes = CASES[name]
    data = make_data(model, 12, SIZES, seed=3)
    network = with_changes(make_network("cycle", data.clients), changes)
    return lambda: method.parties(model.problem(data), network, 7)
