"""Label differential privacy."""

from mtcd.core.features import Feature

FEATURE = Feature(
    parts={
        "mtcd.label_privacy": {"labels": "mtcd.privacy.labels.soft:read_label_privacy"},
        "mtcd.budgets": {"labels": "mtcd.privacy.labels.draws:LABEL_BUDGETS"},
        "mtcd.attachments": {"own_metrics": "mtcd.privacy.labels.own_metrics:OwnMetrics"},
        "mtcd.ended": {"own_metrics": "mtcd.privacy.labels.own_metrics:own_metrics"},
    },
    public_names={
        "LabelDP": "mtcd.privacy.labels.settings",
        "SoftLabels": "mtcd.privacy.labels.soft",
    },
    run_files=("labels.mtcd-labels.json", "own_metrics.json"),
)
