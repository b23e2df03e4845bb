"""Federations of real processes that are killed, hung and cut off from each other, and what must
hold all the same.

``proxies``: links that can be cut. ``plans``: what is trained.
``federation``: the processes and their bundles. ``chaos``: faults, drawn from a seed.
``holds``: what must hold of what the parties kept. ``runs``: whole runs; ``python -m faulty`` does
all of them.
"""
