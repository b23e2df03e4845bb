"""Walks: how a token picks its next client. A file for each, with all that is known of it; by name
in ``WALKS``."""

from mtcd.network.walks.facts import Chain, ChainFacts, Facts, TourTimes
from mtcd.network.walks.walk import NOWHERE, WALKS, Walk, make_walk

__all__ = ["NOWHERE", "WALKS", "Chain", "ChainFacts", "Facts", "TourTimes", "Walk", "make_walk"]
