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
        "mtcd.recovery": {"IN_STEP": "mtcd.methods.dcpa.recovery:policy_of"},
    },
    public_names={
        "DCPA": "mtcd.methods.dcpa.dcpa",
    },
)
