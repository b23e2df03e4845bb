"""Estimators of scikit-learn."""

from mtcd.core.features import Feature

FEATURE = Feature(
    public_names={
        "MTCDClassifier": "mtcd.estimators.classifier",
        "MTCDRegressor": "mtcd.estimators.regressor",
    },
)
