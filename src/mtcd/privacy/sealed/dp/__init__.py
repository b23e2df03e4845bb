"""Sealed tours with differential privacy: parties receive their gradients with noise, a fixed
number of times.

``settings.py`` is the method, ``plan.py`` what all parties know, ``block.py`` what a client
computes, ``budget.py`` the accounting, ``noise.py`` the noise; docs/differential-privacy.md has the
argument. The parties are those of ``privacy/sealed``.
"""
