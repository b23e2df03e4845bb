"""Data sets and experiments of the paper."""

from mtcd.core.features import Feature

FEATURE = Feature(
    config_sections={"data": {"dataset": "mtcd_experiments.datasets.config:DatasetData"}},
    public_names={
        "Forecast": "mtcd_experiments.datasets.entry",
        "load_dataset": "mtcd_experiments.datasets.catalogue",
    },
    commands={"": "mtcd_experiments.commands:app"},
)
