"""The array types that all layers share."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
"""Numbers of the model: aggregates, representations, parameters."""
Rows = NDArray[np.intp]
"""Indices of samples."""
