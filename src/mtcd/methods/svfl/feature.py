"""The method SVFL: a server that polls all clients in every round."""

from mtcd.core.features import Feature

FEATURE = Feature(
    parts={
        "mtcd.methods": {
            "svfl": "mtcd.methods.svfl.svfl:SVFL",
        },
    },
    public_names={
        "SVFL": "mtcd.methods.svfl.svfl",
    },
)
