"""Losses: a file for each; by the names of the models that have them in ``LOSSES``."""

from mtcd.models.losses.loss import LOSSES, Labels, Loss

__all__ = ["LOSSES", "Labels", "Loss"]
