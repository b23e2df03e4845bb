"""The planner: which method, and which settings, for this data, this network and these link costs."""

from mtcd.planner.links import Links, parse_budget, read_links
from mtcd.planner.planning import Plan, plan
from mtcd.planner.proposal import Proposal

__all__ = ["Links", "Plan", "Proposal", "parse_budget", "plan", "read_links"]
