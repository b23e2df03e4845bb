"""What parties may learn of each other in training: ``settings.py`` is the section ``privacy`` of a
config.

``masked`` and ``sealed`` are features: masked aggregation, and tours of an encrypted token.
"""
