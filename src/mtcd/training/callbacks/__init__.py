"""Callbacks: objects that are called during a training and may end it. Each has a file of its
own."""
