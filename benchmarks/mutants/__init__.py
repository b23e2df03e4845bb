"""Mutation tests: single changes to the code, each of which some test should notice."""
