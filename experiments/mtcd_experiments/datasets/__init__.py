"""Public data sets, read from the files that their makers published."""
