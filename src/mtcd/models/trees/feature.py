"""Boosted trees and mixed families of models."""

from mtcd.core.features import Feature

FEATURE = Feature(
    parts={
        "mtcd.inspections": {
            "mtcd.models.trees.model:Additive": "mtcd.models.trees.inspect:inspect_additive",
        },
        "mtcd.model_kinds": {
            "mtcd.models.trees.model:Additive": "mtcd.models.trees.kind:ADDITIVE",
            "mtcd.models.trees.config:AdditiveSection": "mtcd.models.trees.kind:ADDITIVE",
        },
        "mtcd.plans": {
            "mtcd.models.trees.config:AdditiveSection": "mtcd.models.trees.plan:PLANS",
        },
        "mtcd.trained": {"additive": "mtcd.models.trees.trained:read_additive"},
        "mtcd.families": {"additive": "mtcd.models.trees.trained:read_families"},
        "mtcd.party_kinds": {"AdditiveSection": "mtcd.models.trees.party.kind:ADDITIVE"},
    },
    config_sections={
        "model": {
            "kind: trees": "mtcd.models.trees.config:TreesSection",
            "kind: mixed": "mtcd.models.trees.config:MixedSection",
            "parties": "mtcd.models.trees.config:MixedSection",
        },
    },
    public_names={
        "Mixed": "mtcd.models.trees.model",
        "Trees": "mtcd.models.trees.model",
    },
)
