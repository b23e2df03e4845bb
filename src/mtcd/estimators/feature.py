"""Estimators of scikit-learn."""

from mtcd.core.features import Feature

FEATURE = Feature(
    public_names={
        "MTCDClassifier": "mtcd.estimators.linear",
        "MTCDRegressor": "mtcd.estimators.linear",
    },
)
