"""Split neural networks."""

from mtcd.core.features import Feature

FEATURE = Feature(
    parts={
        "mtcd.inspections": {
            "mtcd.models.splitnet.model:SplitModel": "mtcd.models.splitnet.inspect:inspect_split",
        },
        "mtcd.model_kinds": {
            "mtcd.models.splitnet.model:SplitModel": "mtcd.models.splitnet.kind:SPLIT",
            "mtcd.models.splitnet.config:SplitSection": "mtcd.models.splitnet.kind:SPLIT",
        },
        "mtcd.trained": {"split": "mtcd.models.splitnet.trained:read_trained"},
        "mtcd.models_without_weights": {"split": "mtcd.models.splitnet.configured:model_of_run"},
        "mtcd.party_kinds": {"SplitSection": "mtcd.models.splitnet.party.kind:SPLIT"},
    },
    config_sections={
        "model": {
            "kind: split": "mtcd.models.splitnet.config:SplitSection",
            "client": "mtcd.models.splitnet.config:SplitSection",
        },
    },
    public_names={
        "SplitModel": "mtcd.models.splitnet.model",
    },
)
