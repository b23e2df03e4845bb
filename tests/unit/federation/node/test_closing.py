"""A process of a federation that ends closes all that it has open, whatever fails."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
import zenoh

from mtcd.federation.node.context import NodeContext
from mtcd.federation.node.link import Link


def raising(error: Exception) -> SimpleNamespace:
    def close() -> None:
        raise error

    return SimpleNamespace(close=close)


def test_a_session_that_takes_too_long_to_close_is_left() -> None:
    link = object.__new__(Link)
    link._session = raising(zenoh.ZError("close operation timed out!"))  # type: ignore[assignment]
    link.close()


def test_the_log_is_closed_after_links_that_fail() -> None:
    closed: list[str] = []
    context = object.__new__(NodeContext)
    context.rpc = SimpleNamespace(link=raising(OSError("links")))  # type: ignore[assignment]
    context.log = SimpleNamespace(close=lambda: closed.append("log"))  # type: ignore[assignment]
    with pytest.raises(OSError, match="links"):
        context.close()
    assert closed == ["log"]
