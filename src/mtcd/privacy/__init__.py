"""What parties may learn of each other in training: ``settings.py`` is the section ``privacy`` of a config,
``budget.py`` the accounting of differential privacy, ``noise.py`` its noise.
"""

from mtcd.privacy.settings import DP, MASKED, OPEN, PLAIN, SEALED, Aggregation, Mode, Privacy

__all__ = ["DP", "MASKED", "OPEN", "PLAIN", "SEALED", "Aggregation", "Mode", "Privacy"]
