"""mtcd inspect, for Tree-CG: its spanning tree."""

from __future__ import annotations

from dataclasses import replace

from mtcd.core.terminal.findings import TheoryFinding
from mtcd.inspection.facts import MethodFacts, Setting, plain_facts
from mtcd.methods.tree_cg.tree_cg import TreeCG
from mtcd.network.topology import Network


def inspect_tree_cg(method: TreeCG, setting: Setting) -> MethodFacts:
    """The sizes of its messages, and its tree."""
    tree = tree_finding(method, setting.asked.network)
    return replace(plain_facts(method, setting), findings=(tree,))


def tree_finding(method: TreeCG, network: Network) -> TheoryFinding:
    """The root and depth of the spanning tree, and the messages of an iteration of tree-cg."""
    tree, K = method.tree(network), network.size
    shown = (
        f"depth {tree.depth}, root {network.clients[tree.root]}, at most {tree.degree} neighbours"
    )
    meaning = (
        f"an iteration sends 2(K - 1) = {2 * (K - 1)} messages between neighbours, "
        f"{2 * tree.depth} of them one after the other"
    )
    return TheoryFinding("tree_depth", "spanning tree", tree.depth, shown, meaning)
