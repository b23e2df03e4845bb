"""Differential privacy of sealed tours."""

from mtcd.core.features import Feature

FEATURE = Feature(
    parts={
        "mtcd.inspections": {
            "mtcd.privacy.sealed.dp.settings:PrivateTours": "mtcd.privacy.sealed.dp.cost:inspect_private",
        },
        "mtcd.plans": {
            "mtcd.privacy.sealed.dp.settings:PrivateTours": "mtcd.privacy.sealed.dp.cost:PLANS",
        },
        "mtcd.privacy_modes": {
            "dp": "mtcd.privacy.sealed.dp.mode:Private",
        },
    },
    commands={"": "mtcd.privacy.sealed.dp.commands:app"},
)
