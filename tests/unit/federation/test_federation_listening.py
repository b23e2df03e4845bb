"""A party whose address is in use."""

import socket
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("zenoh")

import mtcd
from live import make_bundles, own_table_of
from mtcd.core.errors import MtcdError
from mtcd.federation.names import parse_address
from mtcd.federation.node.node import Node
from mtcd.federation.participant.kinds import participant_of


def test_it_is_told_and_leaves_the_folder_to_the_next_start(tmp_path: Path) -> None:
    data = mtcd.split(np.eye(4), np.arange(4.0), {"a": [0, 1], "b": [2, 3]})
    bundle = make_bundles(tmp_path, data.clients)["a"]
    address = parse_address(bundle.config.address or "")

    def start() -> Node:
        return Node(
            bundle, tmp_path / "run", participant_of(bundle, own_table_of(data, bundle)), None
        )

    with (
        socket.create_server((address.host, address.port)),
        pytest.raises(MtcdError, match="cannot listen.*Stop"),
    ):
        start()
    start().close()
