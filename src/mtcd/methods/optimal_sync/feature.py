"""Weights of a sync that minimise the objective: ``combine: optimal``."""

from mtcd.core.features import Feature

FEATURE = Feature(
    parts={
        "mtcd.combine": {
            "optimal": "mtcd.methods.optimal_sync.rule:Optimal",
        },
    },
)
