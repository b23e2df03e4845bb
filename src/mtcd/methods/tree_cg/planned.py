"""What Tree-CG tells the planner of itself."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from mtcd.methods.method import Method
from mtcd.methods.planned import LinkTimes, Planned, PlanSetting
from mtcd.methods.tree_cg.tree_cg import COEFFICIENTS, INNER_PRODUCTS, TreeCG
from mtcd.network.spanning import spanning_tree
from mtcd.network.topology import Network


class PlannedTreeCG(Planned):
    """Sums that go up a spanning tree, and directions that come down."""

    def candidates(self, setting: PlanSetting) -> Iterator[Method]:
        """The only one, as it has no settings."""
        if setting.network.connected and not setting.smoothness.problem.nonsmooth:
            yield TreeCG()

    def wire(self, method: Method, network: Network, links: LinkTimes, floats: int) -> float:
        """The slowest way from a leaf of the spanning tree to its root, and the slowest way
        back."""
        tree = spanning_tree(network)
        # Seconds until all below a client have reached it, and until it has reached all of them.
        up, down = np.zeros(network.size), np.zeros(network.size)

        for level in reversed(tree.levels[1:]):
            for k in level:
                parent = tree.parents[k]
                assert parent is not None
                rising = up[k] + links.seconds(k, parent, floats + INNER_PRODUCTS)
                falling = down[k] + links.seconds(parent, k, floats + COEFFICIENTS)
                up[parent] = max(up[parent], rising)
                down[parent] = max(down[parent], falling)

        return float(up[tree.root] + down[tree.root])

    def crossings(
        self, method: Method, network: Network, machine_of: Sequence[int]
    ) -> tuple[float, float]:
        """The way up and down a branch of the largest depth, whose share of links between machines
        is that of the whole tree."""
        tree = spanning_tree(network)
        branches, between = 0, 0
        for k, parent in enumerate(tree.parents):
            if parent is not None:
                branches += 1
                between += machine_of[k] != machine_of[parent]

        ways = 2.0 * tree.depth * between / max(1, branches)
        return ways, ways


PLANNED = PlannedTreeCG()
