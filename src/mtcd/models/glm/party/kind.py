"""Linear models in a federation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mtcd.core.files import COEFFICIENTS
from mtcd.data.synthetic import synthetic
from mtcd.data.vertical import VerticalData
from mtcd.federation.credentials.bundle import Bundle
from mtcd.federation.node.predicting import classes_from
from mtcd.federation.participant.kinds import REHEARSED_SAMPLES, Decide, PartyKind
from mtcd.federation.participant.table import PartyTable
from mtcd.federation.schema import Federation
from mtcd.methods.method import Method
from mtcd.models.glm.model import Glm
from mtcd.models.glm.party.block import CSV, PartyBlock, read_block
from mtcd.models.glm.party.own_block import NPZ, by_sample
from mtcd.models.glm.party.participant import LinearParticipant
from mtcd.models.glm.party.problem import glm_of
from mtcd.models.glm.trained import linear_columns
from mtcd.models.glm.training import best_objective
from mtcd.models.predicted import Columns
from mtcd.network.topology import Network


class LinearPartyKind(PartyKind):
    """Generalised linear models, each party with its own columns."""

    block_files = (NPZ, CSV, COEFFICIENTS)

    def participant(self, bundle: Bundle, table: PartyTable | None) -> LinearParticipant:
        return LinearParticipant(bundle, table)

    def rehearse(
        self, federation: Federation, method: Method, settled: Any, network: Network
    ) -> None:
        section: Any = federation.model
        given = Glm(**section.model_dump(), positive=federation.labels.positive)
        # synthetic labels are of other classes
        # Weights of classes name classes that synthetic labels do not have. 'balanced' fits any.
        weight = None if given.class_weight is None else "balanced"
        model = replace(given, positive=None, class_weight=weight)

        data = synthetic(model.loss.example, REHEARSED_SAMPLES, network.size, network.size)
        problem = model.problem(data)
        settled.parties(problem, network, federation.seed)
        # Refuses a method that trains in one process only.
        messages = settled.messages(network, federation.seed, REHEARSED_SAMPLES, problem.outputs)
        messages.bounds("rehearsal")

    def block(self, bundle: Bundle, run: Path) -> PartyBlock:
        return read_block(run)

    def server_decides(self, bundle: Bundle, run: Path) -> Decide:
        model = glm_of(bundle.config)

        def decide(sums: NDArray[np.float64], classes: Any) -> Columns:
            return linear_columns(model, classes_from(classes), by_sample(sums))

        return decide

    def gap(self, model: Any, data: VerticalData, blocks: Mapping[str, Any]) -> float:
        glm = Glm(**model.model_dump())
        problem = glm.problem(data)
        best = best_objective(data, glm, problem)
        # The demo trains without intercept and scaling, so that theta is all that a block holds.
        held = problem.evaluate([np.asarray(block.theta) for block in blocks.values()])
        return abs(held - best) / best


LINEAR = LinearPartyKind()
