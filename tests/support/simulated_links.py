"""Links for simulations."""


class UnevenLinks:
    """Each link has its own latency, and no link is like another."""

    def latency_of(self, sender: int, to: int) -> float:
        return 0.001 * (1 + (7 * sender + 3 * to) % 5)

    def seconds_per_float(self, sender: int, to: int) -> float:
        return 1e-5 * (1 + (5 * sender + to) % 3)
