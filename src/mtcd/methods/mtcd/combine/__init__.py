"""Rules for the weights of a sync: a file for each; by name in ``RULES``."""

from mtcd.methods.mtcd.combine.rule import RULES, Combine

__all__ = ["RULES", "Combine"]
