"""A party's own part of the training: its table, its problem, its step size, its block."""
