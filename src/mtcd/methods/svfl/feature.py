"""The method SVFL: a server that polls all clients in every round."""

from mtcd.core.features import Feature

FEATURE = Feature(
    parts={
        "mtcd.methods": {
            "svfl": "mtcd.methods.svfl.svfl:SVFL",
        },
        "mtcd.default_methods": {"sums": "mtcd.methods.svfl.svfl:SVFL"},
        "mtcd.plan_candidates": {
            "mtcd.methods.svfl.svfl:SVFL": "mtcd.methods.svfl.planned:PLANNED",
        },
        "mtcd.recovery": {"ROUNDS": "mtcd.methods.svfl.recovery:policy_of"},
        "mtcd.stories": {"round-without-client": "mtcd.methods.svfl.story:STORY"},
    },
    public_names={
        "SVFL": "mtcd.methods.svfl.svfl",
    },
)
