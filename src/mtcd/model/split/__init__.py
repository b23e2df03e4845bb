"""Split neural networks: each client trains a network of its own on what it sees, and a fusion network joins them.

This is the only part of the library that imports torch (the extra ``mtcd[torch]``).
"""
