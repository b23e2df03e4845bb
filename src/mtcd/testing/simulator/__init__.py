"""A federation in one thread: reliable parties without processes and network, with any fault at any
moment.

``world``: all parties, their journals, and the links between them. Time is a number of steps, and
all that happens follows from a seed: envelopes and acks are lost, duplicated and reordered; parties
crash before or after a commit, restart from their journals, hang; links are cut. ``invariants``:
what must hold of the journals at every moment. ``stories``: short scripted runs, printed as
transcripts (``transcript``).

The tests of ``delivery`` and ``recovery`` run random storms on it. ``python -m
mtcd.testing.simulator NAME`` prints a transcript; without a name, the list.
"""
