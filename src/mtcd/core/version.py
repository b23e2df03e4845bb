"""The version of the library, and of what its parties tell each other, in one place."""

VERSION = "0.1.0"
PROTOCOL = 10
"""Of what parties tell each other. Count it up when a payload gets a field, or a field another
meaning."""
JOURNAL_FORMAT = 10
"""Of the journals of parties. Count it up when the format of the files or of their records
changes."""
