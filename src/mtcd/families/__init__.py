"""Model families: the kinds of models that a party may have on a token. A file for each; by name in ``FAMILIES``.

All that a token needs is a sum: each party adds the margins of its own model, whatever that model is.
"""

from mtcd.families.family import FAMILIES, Family

__all__ = ["FAMILIES", "Family"]
