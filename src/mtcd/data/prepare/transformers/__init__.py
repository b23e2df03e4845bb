"""The built-in transformers: a file for each, by name in ``TRANSFORMERS``."""
