"""Differential privacy of sealed tours."""

from mtcd.core.features import Feature

FEATURE = Feature(
    commands={"": "mtcd.privacy.sealed.dp.commands:app"},
)
