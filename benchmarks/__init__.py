"""Speed as a ratio to a floor that is timed in the same run. ``make bench`` runs all of it."""
