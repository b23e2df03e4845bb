"""Sealed tours: exact training in which no party sees the token. ``settings.py`` is the method,
docs/privacy.md the promise; ``client.py`` and ``holder.py`` are the parties.
"""
