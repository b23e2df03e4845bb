"""The methods MTCD and STCD."""

from mtcd.core.features import Feature

FEATURE = Feature(
    parts={
        "mtcd.methods": {
            "mtcd": "mtcd.methods.mtcd.mtcd:MTCD",
            "stcd": "mtcd.methods.mtcd.mtcd:STCD",
        },
    },
    public_names={
        "MTCD": "mtcd.methods.mtcd.mtcd",
        "STCD": "mtcd.methods.mtcd.mtcd",
        "Schedule": "mtcd.methods.mtcd.stepsizes",
    },
)
