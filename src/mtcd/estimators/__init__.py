"""Estimators with the interface of scikit-learn: the columns of X are split over clients on a
network."""
