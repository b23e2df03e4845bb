"""Sealed tours: no party reads the token."""

from mtcd.core.features import Feature

FEATURE = Feature(
    parts={
        "mtcd.privacy_modes": {
            "sealed": "mtcd.privacy.sealed.mode:Sealed",
        },
    },
)
