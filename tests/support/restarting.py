"""Federations in one thread whose parties end and begin again, for tests."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np

from hubs import Hub, linear
from live import in_process
from mtcd.models.glm.party.block import read_block
from problems import MODELS, make_data

DATA = make_data(MODELS[0], 8, [1, 2, 1, 1], seed=0)
CYCLE = {"links": [["c0", "c1"], ["c1", "c2"], ["c2", "c3"], ["c3", "c0"]]}
METHODS: dict[str, dict[str, Any]] = {
    "stcd": {
        "server": None,
        "method": {"kind": "stcd", "stepsize": 0.01},
        "stop": {"iterations": 600},
    },
    "mtcd": {"method": {"kind": "mtcd", "hops": 4, "stepsize": 0.01}, "stop": {"iterations": 150}},
    **{
        kind: {
            "method": {"kind": "svfl", "stepsize": 0.01},
            "privacy": {"aggregation": kind},
            "stop": {"iterations": 25},
        }
        for kind in ("masked", "double-masked")
    },
}


class Restarting(Hub):
    """Parties end, and begin again from a folder."""

    def __init__(self, folder: Path, method: str) -> None:
        super().__init__(folder, DATA.clients, linear(DATA), network=CYCLE, **METHODS[method])
        self.folder = folder / "runs"
        self.begin()

    def steps(self, count: int) -> None:
        for _ in range(count):
            if not self.act() and not self.deliver():
                self.wait()

    def end(self, *names: str) -> None:
        """As if killed: what is under way to and from them is lost, and their links go down."""
        for name in names:
            self.nodes[name].log.close()
            self.nodes[name].folder.close()
            self.wires[name].up.clear()
        lost = [
            (passing, done)
            for passing, done in self.under_way
            if {passing.sender, passing.to} & {*names}
        ]
        for passing, done in lost:
            self.under_way.remove((passing, done))
            if passing.sender not in names:
                done(None)
        for near in self.nodes.keys() - {*names}:
            for name in sorted(self.wires[near].up & {*names}):
                self.wires[near].up.discard(name)
                self.nodes[near]._changed(name, False)

    def start(self, *names: str) -> None:
        for name in names:
            bundle = self.bundles[name]
            self.nodes[name] = self._node(bundle, self.folder / name, linear(DATA)(bundle))
            self.nodes[name]._begin()
        for name in names:
            for peer in sorted(self.wires[name].peers):
                for near, far in ((name, peer), (peer, name)):
                    if far not in self.wires[near].up:
                        self.wires[near].up.add(far)
                        self.nodes[near]._changed(far, True)

    def copy(self, to: Path, *names: str) -> None:
        for name in names:
            shutil.copytree(self.folder / name, to / name)

    def put_back(self, copies: Path, *names: str) -> None:
        for name in names:
            shutil.rmtree(self.folder / name)
            shutil.copytree(copies / name, self.folder / name)

    def check_model(self) -> None:
        """That of one process without any restart."""
        self.run()
        expected = in_process(DATA, self.bundles["c0"])
        for name in DATA.clients:
            mine = read_block(self.folder / name).theta
            np.testing.assert_allclose(mine, expected.parameters[name][: len(mine)], atol=1e-12)
