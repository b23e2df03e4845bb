"""The method DCPA: all neighbours exchange messages in every iteration."""

from mtcd.core.features import Feature

FEATURE = Feature(
    parts={
        "mtcd.methods": {
            "dcpa": "mtcd.methods.dcpa.dcpa:DCPA",
        },
    },
    public_names={
        "DCPA": "mtcd.methods.dcpa.dcpa",
    },
)
