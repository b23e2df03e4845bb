"""Experiments: files that say what to train and what to draw, run over several seeds."""
