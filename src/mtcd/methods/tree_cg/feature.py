"""The method Tree-CG: conjugate gradients whose sums go over a spanning tree."""

from mtcd.core.features import Feature

FEATURE = Feature(
    parts={
        "mtcd.inspections": {
            "mtcd.methods.tree_cg.tree_cg:TreeCG": "mtcd.methods.tree_cg.inspect:inspect_tree_cg",
        },
        "mtcd.methods": {
            "tree-cg": "mtcd.methods.tree_cg.tree_cg:TreeCG",
        },
        "mtcd.plan_candidates": {
            "mtcd.methods.tree_cg.tree_cg:TreeCG": "mtcd.methods.tree_cg.planned:PLANNED",
        },
    },
    public_names={
        "TreeCG": "mtcd.methods.tree_cg.tree_cg",
    },
)
