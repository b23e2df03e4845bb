"""The section ``costs`` of a config, apart from the others: the operator's commands read it too, and
import neither methods nor tables.
"""

from __future__ import annotations

from typing import Literal

from mtcd.config.section import Number, Section


class CostsSection(Section):
    """The prices of messages, or of the numbers in them: see mtcd.Costs."""

    ratio: Number = 100.0
    """a message between client and server costs 1, one between clients 1/ratio"""
    account: Literal["charged", "sent"] = "charged"
    """`charged` as in the paper, or `sent`: what was really sent"""
    per: Literal["message", "float"] = "message"
    """`message`, or `float`: each number in a message costs that much, 1 with the server and
    1/ratio between clients, so that large messages cost more than small ones. `stop.cost`,
    `inspect` and `plan` go by it; a run tells both (`cost_per`)"""
