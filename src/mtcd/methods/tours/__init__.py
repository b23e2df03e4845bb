"""Accelerations of tours: a file for each; by name in ``ACCELERATIONS``."""
