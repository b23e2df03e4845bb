"""Pages and pictures of runs."""

from mtcd.core.features import Feature

FEATURE = Feature(
    commands={"": "mtcd.reporting.commands:app"},
)
