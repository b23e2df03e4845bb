"""Split neural networks."""

from mtcd.core.features import Feature

FEATURE = Feature(
    parts={"mtcd.trained": {"split": "mtcd.models.splitnet.trained:read_trained"}},
    public_names={
        "SplitModel": "mtcd.models.splitnet.model",
    },
)
