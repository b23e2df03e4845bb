"""Split neural networks."""

from mtcd.core.features import Feature

FEATURE = Feature(
    parts={
        "mtcd.inspections": {
            "mtcd.models.splitnet.model:SplitModel": "mtcd.models.splitnet.inspect:inspect_split",
        },
        "mtcd.model_kinds": {
            "mtcd.models.splitnet.model:SplitModel": "mtcd.models.splitnet.kind:SPLIT",
            "mtcd.config.model_schema:SplitSection": "mtcd.models.splitnet.kind:SPLIT",
        },
        "mtcd.trained": {"split": "mtcd.models.splitnet.trained:read_trained"},
        "mtcd.party_kinds": {"SplitSection": "mtcd.models.splitnet.party.kind:SPLIT"},
    },
    public_names={
        "SplitModel": "mtcd.models.splitnet.model",
    },
)
