"""Callbacks: objects that are called during a training and may end it. Each has a file of its own."""

from mtcd.callbacks.callback import CALLBACKS, Callback, Moment, RunInfo

__all__ = ["CALLBACKS", "Callback", "Moment", "RunInfo"]
