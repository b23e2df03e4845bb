"""What Tree-CG tells the planner of itself."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from mtcd.methods.method import Method
from mtcd.methods.planned import Leg, Planned, PlanSetting
from mtcd.methods.tree_cg.tree_cg import COEFFICIENTS, INNER_PRODUCTS, TreeCG
from mtcd.network.topology import Network


class PlannedTreeCG(Planned):
    """Sums that go up a spanning tree, and directions that come down."""

    def candidates(self, setting: PlanSetting) -> Iterator[Method]:
        """The only one: another tree would cost the same."""
        if setting.network.connected and not setting.smoothness.problem.nonsmooth:
            yield TreeCG()

    def changed(self, setting: PlanSetting, method: Method) -> Iterator[Method]:
        """With more or fewer neighbours in the tree: flatter or narrower, as many messages."""
        assert isinstance(method, TreeCG)
        if setting.bytes_count:
            for degree in (method.degree * 2, method.degree // 2, method.degree - 1):
                if 2 <= degree <= 2 * setting.network.size:
                    yield replace(method, degree=degree)

    def messages(self, method: Method, network: Network, floats: int) -> list[Leg]:
        """Each client sends up once it has heard from all its children; then the answer of the root
        goes down the same way."""
        assert isinstance(method, TreeCG)
        tree = method.tree(network)
        legs: list[Leg] = []

        heard: list[list[int]] = [[] for _ in tree.parents]
        for level in reversed(tree.levels[1:]):
            for k in level:
                parent = tree.parents[k]
                assert parent is not None
                legs.append(Leg((k, parent), floats + INNER_PRODUCTS, after=tuple(heard[k])))
                heard[parent].append(len(legs) - 1)

        received = {tree.root: tuple(heard[tree.root])}
        for level in tree.levels[1:]:
            for k in level:
                parent = tree.parents[k]
                assert parent is not None
                legs.append(Leg((parent, k), floats + COEFFICIENTS, after=received[parent]))
                received[k] = (len(legs) - 1,)

        return legs

    def crossings(
        self, method: Method, network: Network, machine_of: Sequence[int]
    ) -> tuple[float, float]:
        """The way up and down a branch of the largest depth, whose share of links between machines
        is that of the whole tree."""
        assert isinstance(method, TreeCG)
        tree = method.tree(network)
        branches, between = 0, 0
        for k, parent in enumerate(tree.parents):
            if parent is not None:
                branches += 1
                between += machine_of[k] != machine_of[parent]

        ways = 2.0 * tree.depth * between / max(1, branches)
        return ways, ways


PLANNED = PlannedTreeCG()
