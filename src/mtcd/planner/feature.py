"""The planner: which method, and how long it would take."""

from mtcd.core.features import Feature

FEATURE = Feature(
    commands={"": "mtcd.planner.commands:app"},
)
