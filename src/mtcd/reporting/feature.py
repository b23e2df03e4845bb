"""Pages and pictures of runs."""

from mtcd.core.features import Feature

FEATURE = Feature(
    parts={
        "mtcd.federation_pages": {"dashboard": "mtcd.reporting.federation_dashboard:show_dashboard"}
    },
    commands={"": "mtcd.reporting.commands:app"},
)
