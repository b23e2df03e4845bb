"""What a training enters where several trainings are counted together."""

from __future__ import annotations


class Account:
    """An account that counts nothing. A method whose trainings add up, as those that spend a
    privacy budget do, returns its own from ``Method.account``."""

    def begin(self) -> None:
        """Enter the training, before its first message.

        Raises
        ------
        ConfigError
            If the training cannot be entered: it must not begin then.
        """

    def end(self, iterations: int) -> tuple[str, ...]:
        """Enter how many iterations were begun; returns notes for the user."""
        return ()
