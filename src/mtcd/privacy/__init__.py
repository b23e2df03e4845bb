"""What parties may learn of each other in training: ``settings.py`` is the section ``privacy`` of a config,
``budget.py`` the accounting of differential privacy, ``noise.py`` its noise.
"""

from mtcd.privacy.settings import DOUBLE_MASKED, DP, MASKED, OPEN, PLAIN, SEALED, Aggregation, Mode, Privacy

__all__ = ["DOUBLE_MASKED", "DP", "MASKED", "OPEN", "PLAIN", "SEALED", "Aggregation", "Mode", "Privacy"]
