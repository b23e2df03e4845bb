"""The method DCPA: all neighbours exchange messages in every iteration."""

from mtcd.core.features import Feature

FEATURE = Feature(
    parts={
        "mtcd.methods": {
            "dcpa": "mtcd.methods.dcpa.dcpa:DCPA",
        },
        "mtcd.plan_candidates": {
            "mtcd.methods.dcpa.dcpa:DCPA": "mtcd.methods.dcpa.planned:PLANNED",
        },
    },
    public_names={
        "DCPA": "mtcd.methods.dcpa.dcpa",
    },
)
