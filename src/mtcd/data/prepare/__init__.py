"""Preparation of columns: numbers, categories and dates become the block of a client.

It belongs to one party, is fitted on that party's own training rows, and is kept with its block.
"""

from mtcd.data.prepare.preparation import ColumnPreparation, Preparation
from mtcd.data.prepare.raw import Preparations, RawColumns
from mtcd.data.prepare.recipe import ColumnRecipe, read_recipe
from mtcd.data.prepare.transformer import TRANSFORMERS, Fitted, Stateless, Transformer

__all__ = [
    "TRANSFORMERS",
    "ColumnPreparation",
    "ColumnRecipe",
    "Fitted",
    "Preparation",
    "Preparations",
    "RawColumns",
    "Stateless",
    "Transformer",
    "read_recipe",
]
