"""Differential privacy of sealed tours."""

from mtcd.core.features import Feature

FEATURE = Feature(
    parts={
        "mtcd.privacy_modes": {
            "dp": "mtcd.privacy.sealed.dp.mode:Private",
        },
    },
    commands={"": "mtcd.privacy.sealed.dp.commands:app"},
)
