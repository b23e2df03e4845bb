"""Accelerations of tours: a file for each; by name in ``ACCELERATIONS``."""

from mtcd.methods.accelerations.acceleration import ACCELERATIONS, Acceleration

__all__ = ["ACCELERATIONS", "Acceleration"]
