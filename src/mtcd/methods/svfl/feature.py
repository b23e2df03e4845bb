"""The method SVFL: a server that polls all clients in every round."""

from mtcd.core.features import Feature

FEATURE = Feature(
    parts={
        "mtcd.methods": {
            "svfl": "mtcd.methods.svfl.svfl:SVFL",
        },
        "mtcd.default_methods": {"sums": "mtcd.methods.svfl.svfl:SVFL"},
        "mtcd.recovery": {"ROUNDS": "mtcd.methods.svfl.recovery:policy_of"},
    },
    public_names={
        "SVFL": "mtcd.methods.svfl.svfl",
    },
)
