"""Additive models in a federation: trees, or another family for each party."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mtcd.config.schema import StopSection
from mtcd.core.files import COEFFICIENTS
from mtcd.data.synthetic import synthetic
from mtcd.federation.credentials.bundle import Bundle
from mtcd.federation.credentials.bundle_schema import BundleConfig
from mtcd.federation.node.predicting import classes_from
from mtcd.federation.participant.kinds import REHEARSED_SAMPLES, Decide, PartyKind
from mtcd.federation.participant.table import PartyTable
from mtcd.federation.schema import Federation
from mtcd.methods.method import Method
from mtcd.models.glm.party.block import CSV
from mtcd.models.glm.party.own_block import NPZ, by_sample
from mtcd.models.predicted import Columns
from mtcd.models.trees.config import FEW_HOPS, AdditiveSection
from mtcd.models.trees.families.trees import TreeFamily
from mtcd.models.trees.party.block import AdditiveBlock, additive_of, read_additive_block
from mtcd.models.trees.party.participant import AdditiveParticipant
from mtcd.models.trees.problem import AdditiveProblem
from mtcd.models.trees.trained import additive_columns
from mtcd.models.trees.training import additive_method, check_additive
from mtcd.network.topology import Network
from mtcd.training.stop import Stop


def _section(given: Any) -> AdditiveSection:
    assert isinstance(given, AdditiveSection)  # the class that this kind is registered for
    return given


class AdditivePartyKind(PartyKind):
    """Additive models: how a party of a federation trains, predicts and stores its part."""

    # the files of linear models too: the run folder may have been used for one before
    block_files = (NPZ, CSV, COEFFICIENTS)

    def participant(self, bundle: Bundle, table: PartyTable | None) -> AdditiveParticipant:
        return AdditiveParticipant(bundle, table)

    def rehearse(
        self, federation: Federation, method: Method, settled: Any, network: Network
    ) -> None:
        section = _section(federation.model)
        model = section.model()
        families = model.families(network.clients)
        check_additive(method, families, Stop(**federation.stop.model_dump()))
        if model.class_weight is not None:
            # the synthetic labels below need not have the classes that are weighted
            model = section.model_copy(update={"class_weight": None}).model()

        data = synthetic(model.plain_loss.example, REHEARSED_SAMPLES, network.size, network.size)
        # By the names of the parties: families are given by name.
        named = replace(data, clients=network.clients)
        problem = AdditiveProblem.of(model, named, federation.seed)
        additive_method(method, families).parties(problem, network, federation.seed)

    def block(self, bundle: Bundle, run: Path) -> AdditiveBlock:
        return read_additive_block(run)

    def server_decides(self, bundle: Bundle, run: Path) -> Decide:
        model = additive_of(bundle.config)

        def decide(sums: NDArray[np.float64], classes: Any) -> Columns:
            return additive_columns(model, classes_from(classes), by_sample(sums))

        return decide

    def packages(self, config: BundleConfig) -> tuple[str, ...]:
        if config.is_server:
            # A party of another family than trees needs no LightGBM, and neither does the server.
            return ()
        family = _section(config.model).model(config.labels.positive).family(config.name)
        if isinstance(family, TreeFamily):
            return ("lightgbm",)
        return ()

    def default_stop(self) -> StopSection:
        return StopSection(iterations=FEW_HOPS)

    def recipe(self, config: BundleConfig) -> Any:
        """As the family of the party takes its columns."""
        return _section(config.model).model().recipe(config.name)


ADDITIVE = AdditivePartyKind()
