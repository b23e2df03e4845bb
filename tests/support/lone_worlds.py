"""Simulated federations with a lone token."""

from __future__ import annotations

from mtcd.federation.recovery.choose import make_reliable_party
from mtcd.methods.mtcd.mtcd import STCD
from mtcd.models.glm.model import Glm
from mtcd.network.topology import Network, make_network
from mtcd.protocol.token import Token
from mtcd.testing.simulator.invariants import check_lone_token
from mtcd.testing.simulator.world import Faults, World, make_with
from problems import make_data

MODEL = Glm("ridge", alpha=0.7)
DATA = make_data(MODEL, 12, [2, 1, 3, 2, 2], seed=3)
PROBLEM = MODEL.problem(DATA)
NAMES = dict(enumerate(DATA.clients))


def lone_world(network: Network | str, seed: int, faults: Faults, walk: str = "lazy") -> World:
    graph = make_network(network, DATA.clients) if isinstance(network, str) else network
    method = STCD(stepsize=0.02, local_updates=5, walk=walk)
    return World(
        lambda: method.parties(PROBLEM, graph, 7),
        seed,
        make_with(make_reliable_party, graph),
        faults,
    )


def assert_kept(world: World) -> Token:
    """One token counts, and it is the aggregate of what all hold."""
    return check_lone_token(world, PROBLEM)
