"""Weights of samples and of classes: ``data.weight``, ``model.class_weight``."""

from mtcd.core.features import Feature

FEATURE = Feature(
    parts={
        "mtcd.sample_weights": {
            "check": "mtcd.models.sample_weights.weighted:check_class_weight",
            "classes": "mtcd.models.sample_weights.weighted:with_class_weights",
            "loss": "mtcd.models.sample_weights.weighted:Weighted",
        },
    },
)
