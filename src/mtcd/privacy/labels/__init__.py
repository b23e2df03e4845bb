"""Label differential privacy: labels are randomised at their holder, once for a table.

``settings.py`` is the setting ``labels`` of a training, ``mechanisms.py`` how labels are
randomised, ``draws.py`` what makes a table's draws the same every time, and the account of what
was spent, which ``shown.py`` shows. ``corrected.py`` and ``networks.py`` are the losses of
randomised labels, ``soft.py`` labels with noise and without a promise. ``own_metrics.py`` measures a
run on the true labels, for their holder alone. docs/privacy.md has the promise.
"""
