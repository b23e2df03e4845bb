"""Sealed tours: an encrypted token."""

from mtcd.core.features import Feature

FEATURE = Feature(
    parts={
        "mtcd.inspections": {
            "mtcd.privacy.sealed.settings:SealedTours": "mtcd.privacy.sealed.inspect:inspect_sealed",
        },
        "mtcd.privacy_modes": {
            "sealed": "mtcd.privacy.sealed.mode:Sealed",
        },
        "mtcd.plan_candidates": {
            "mtcd.privacy.sealed.settings:SealedTours": "mtcd.privacy.sealed.planned:PLANNED",
        },
        "mtcd.party_privacy": {"sealed": "mtcd.privacy.sealed.in_federation:SEALED_PRIVACY"},
    },
)
