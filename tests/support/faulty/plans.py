"""What a federation under faults trains: a small problem whose optimum takes a few thousand
hops."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from mtcd.data.synthetic import synthetic
from mtcd.data.vertical import VerticalData
from mtcd.models.glm.model import Glm
from mtcd.models.trees.model import Trees
from mtcd.models.trees.problem import AdditiveProblem
from ports import reserved_ports

FEATURES = 3


@dataclass(frozen=True)
class Plan:
    """What is trained, by whom."""

    method: dict[str, Any]
    network: dict[str, Any]
    parties: int = 8
    model: dict[str, Any] = field(default_factory=lambda: {"kind": "logistic", "l2": 1.0})
    alignment: str = "given order"
    samples: int = 40
    iterations: int = 10**9
    seed: int = 1
    features: int = FEATURES
    """Columns of each party."""
    privacy: dict[str, Any] = field(default_factory=dict)

    @property
    def server(self) -> bool:
        return self.method["kind"] not in ("stcd", "dcpa", "tree-cg")

    @property
    def told(self) -> list[str]:
        """Who gets the labels: the server where syncs look at the objective, and for networks."""
        rule = self.method.get("combine")
        looks = rule in ("optimal", "memory") or "acceleration" in self.method
        server = self.server and (self.networks or looks)
        return ["parties", "server"] if server else ["parties"]

    @property
    def sealed(self) -> bool:
        """Whether the token is encrypted, and labels stay with their holder."""
        return self.privacy.get("mode") == "sealed"

    @property
    def networks(self) -> bool:
        """Whether a split network is trained."""
        return self.model["kind"] == "split"

    @property
    def glm(self) -> Glm:
        return Glm(**self.model)

    @property
    def trees(self) -> bool:
        """Whether boosted trees are trained."""
        return self.model["kind"] == "trees"

    @property
    def problem(self) -> Any:
        """The linear model or the trees on the data."""
        if self.trees:
            own = {key: value for key, value in self.model.items() if key != "kind"}
            return AdditiveProblem.of(Trees(**own), self.data, self.seed)
        return self.glm.problem(self.data)

    @property
    def names(self) -> list[str]:
        return [f"p{k}" for k in range(self.parties)]

    @cached_property
    def data(self) -> VerticalData:
        kind = "logistic" if self.networks or self.trees else self.model["kind"]
        drawn = synthetic(
            kind, self.samples, self.features * self.parties, self.parties, seed=self.seed
        )
        labels = np.where(drawn.labels > 0, "yes", "no") if self.networks else drawn.labels
        return replace(drawn, clients=tuple(self.names), labels=labels)

    def file(self) -> dict[str, Any]:
        """The federation file."""
        names = self.names
        ports = reserved_ports(len(names) + 1)
        table: dict[str, Any] = (
            {} if self.alignment == "given order" else {"data": {"id": "person"}}
        )
        places = {
            name: {"address": f"127.0.0.1:{port}", **table}
            for name, port in zip(names, ports, strict=False)
        }
        content: dict[str, Any] = {
            "name": "faulty",
            "parties": places,
            "labels": {"held_by": names[0], "column": "outcome"}
            | ({} if self.sealed else {"shared_with": self.told}),
            "alignment": self.alignment,
            "network": self.network,
            "model": self.model,
            "method": self.method,
            "stop": {"iterations": self.iterations},
            "seed": self.seed,
            "privacy": self.privacy,
        }
        return content | ({"server": f"127.0.0.1:{ports[-1]}"} if self.server else {})
