"""Networks that change: clients leave and join (``network.changes``)."""

from mtcd.core.features import Feature

FEATURE = Feature(
    parts={
        "mtcd.roaming": {
            "changes": "mtcd.methods.membership.roaming:changing_roaming",
        },
    },
)
