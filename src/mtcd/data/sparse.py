"""Whether a matrix is sparse, without importing scipy.sparse if it is not."""

from __future__ import annotations

import sys
from typing import Any


def is_sparse(matrix: Any) -> bool:
    """As ``scipy.sparse.issparse``: whoever has made a sparse matrix has loaded it.

    >>> is_sparse([[0.0]])
    False
    """
    loaded = sys.modules.get("scipy.sparse")
    return loaded is not None and bool(loaded.issparse(matrix))
