"""What tests ask of traces."""

import numpy as np

from mtcd.reporting.trace.trace import Trace


def assert_same_trace(found: Trace | None, expected: Trace | None) -> None:
    """The same network, messages and visits."""
    assert found is not None
    for name in Trace.__dataclass_fields__:
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name), err_msg=name)
