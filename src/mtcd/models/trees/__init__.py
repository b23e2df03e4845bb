"""Additive models: boosted trees, and a family of models of its own at every party (``families``, a
file for each).

All that a token needs is a sum: each party adds the margins of its own model, whatever that model
is.
"""
