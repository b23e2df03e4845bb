"""Sweeps: trainings over a grid of settings and seeds."""
