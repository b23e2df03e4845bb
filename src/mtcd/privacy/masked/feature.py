"""Masked aggregation: the server learns sums of uploads only."""

from mtcd.core.features import Feature

FEATURE = Feature(
    parts={
        "mtcd.privacy_modes": {
            "masked": "mtcd.privacy.masked.masked:Masked",
            "double-masked": "mtcd.privacy.masked.masked:Masked",
        },
    },
)
