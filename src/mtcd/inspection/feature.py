"""What can be said of MTCD and STCD before they train."""

from mtcd.core.features import Feature

FEATURE = Feature(
    parts={
        "mtcd.inspections": {
            "mtcd.methods.mtcd.mtcd:MTCD": "mtcd.inspection.tokens:inspect_tokens",
        },
    },
    public_names={
        "Inspection": "mtcd.inspection.facts",
        "inspect": "mtcd.inspection.inspect",
    },
)
