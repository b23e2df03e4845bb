"""A weight for each cluster and sync, with memory: ``combine: memory``."""

from mtcd.core.features import Feature

FEATURE = Feature(
    parts={
        "mtcd.combine": {
            "memory": "mtcd.methods.cluster_memory.rule:ClusterMemory",
        },
    },
)
