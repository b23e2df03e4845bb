"""Tables for the tests of reading them: a good one, and what a bad request is told (see ``put`` in
conftest.py)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from mtcd.core.errors import DataError
from mtcd.data.tables import read_tables

MAIN = "pid,age,bp,bmi,y\na,31,120,21.5,0\nb,42,130,22.5,1\nc,53,140,23.5,1\nd,64,150,24.5,0\n"


def refused(*words: str, **arguments: Any) -> str:
    with pytest.raises(DataError) as caught:
        read_tables(**{"table": Path("main.csv"), "label": "y", "clients": 1, **arguments})
    for word in words:
        assert word in str(caught.value)
    return str(caught.value)
