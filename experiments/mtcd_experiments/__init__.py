"""Experiments: files that declare trainings and figures, run over several seeds."""
