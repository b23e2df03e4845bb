"""Sealed tours with differential privacy: parties receive their gradients with noise, a fixed number of times.

``settings.py`` is the method, ``plan.py`` what all parties know, ``block.py`` what a client computes;
docs/differential-privacy.md has the argument. The parties are those of ``methods/sealed``.
"""
