"""Generalised linear models."""

from mtcd.core.features import Feature

FEATURE = Feature(
    parts={
        "mtcd.inspections": {
            "mtcd.models.glm.model:Glm": "mtcd.models.glm.inspect:inspect_linear",
        },
        "mtcd.model_kinds": {
            "mtcd.models.glm.model:Glm": "mtcd.models.glm.kind:LINEAR",
            "mtcd.models.glm.config:GlmSection": "mtcd.models.glm.kind:LINEAR",
        },
        "mtcd.default_model": {"model": "mtcd.models.glm.model:Glm"},
        "mtcd.trained": {"model": "mtcd.models.glm.trained_files:read_linear"},
        "mtcd.party_kinds": {"GlmSection": "mtcd.models.glm.party.kind:LINEAR"},
    },
    config_sections={"model": {"": "mtcd.models.glm.config:GlmSection"}},
    public_names={
        "Glm": "mtcd.models.glm.model",
    },
)
