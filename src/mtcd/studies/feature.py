"""Sweeps, regularisation paths and cross-validation."""

from mtcd.core.features import Feature

FEATURE = Feature(
    public_names={
        "CrossValidation": "mtcd.studies.cross_validation",
        "RegularisationPath": "mtcd.studies.path",
        "Sweep": "mtcd.studies.sweep",
        "cross_validate": "mtcd.studies.cross_validation",
        "path": "mtcd.studies.path",
        "sweep": "mtcd.studies.sweep",
    },
    commands={"": "mtcd.studies.commands:app"},
)
