"""Estimators with the interface of scikit-learn: the columns of X are split over clients on a network."""

from mtcd.estimators.classifier import MTCDClassifier
from mtcd.estimators.regressor import MTCDRegressor
from mtcd.estimators.trees import TreesClassifier, TreesRegressor

__all__ = ["MTCDClassifier", "MTCDRegressor", "TreesClassifier", "TreesRegressor"]
