"""Trees as estimators of scikit-learn: deleted with trees, and with the estimators."""

from mtcd.core.features import Feature

FEATURE = Feature(
    public_names={
        "TreesClassifier": "mtcd.models.trees.estimators.trees",
        "TreesRegressor": "mtcd.models.trees.estimators.trees",
    },
)
