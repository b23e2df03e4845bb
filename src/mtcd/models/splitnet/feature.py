"""Split neural networks."""

from mtcd.core.features import Feature

FEATURE = Feature(
    parts={
        "mtcd.inspections": {
            "mtcd.models.splitnet.model:SplitModel": "mtcd.models.splitnet.inspect:inspect_split",
        },
        "mtcd.trained": {"split": "mtcd.models.splitnet.trained:read_trained"},
        "mtcd.party_kinds": {"SplitSection": "mtcd.models.splitnet.party.kind:SPLIT"},
    },
    public_names={
        "SplitModel": "mtcd.models.splitnet.model",
    },
)
