"""Additive models: boosted trees, or a model of another family at every party.

A token needs nothing but a sum, z = c + sum_k h_k(x_k), so h_k may be any model. ``families`` has a
module for each: trees, linear blocks, small networks. Start with ``families/trees.py`` (what a
visit does), then ``gains.py`` (how parties share the work) and ``ensemble.py`` (how a sync combines
trees).
"""
