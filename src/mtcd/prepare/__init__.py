"""Preparation of columns: numbers, categories and dates become the block of a client.

It belongs to one party, is fitted on that party's own training rows, and is kept with its block.
"""

from mtcd.prepare.preparation import ColumnPreparation, Preparation
from mtcd.prepare.raw import Preparations, RawColumns
from mtcd.prepare.recipe import Recipe, read_recipe
from mtcd.prepare.transformer import TRANSFORMERS, Fitted, Stateless, Transformer

__all__ = [
    "TRANSFORMERS",
    "ColumnPreparation",
    "Fitted",
    "Preparation",
    "Preparations",
    "RawColumns",
    "Recipe",
    "Stateless",
    "Transformer",
    "read_recipe",
]
