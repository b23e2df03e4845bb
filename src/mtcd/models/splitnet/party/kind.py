"""Split networks in a federation. PyTorch is imported by those methods that need it: whether it is
installed is checked by way of this kind."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mtcd.config.schema import ModelSection
from mtcd.core.errors import ConfigError
from mtcd.core.files import WEIGHTS
from mtcd.core.optional import find
from mtcd.federation.credentials.bundle import Bundle
from mtcd.federation.credentials.bundle_schema import BundleConfig
from mtcd.federation.participant.kinds import REHEARSED_SAMPLES, Block, Decide, PartyKind
from mtcd.federation.participant.participant import Participant
from mtcd.federation.participant.table import PartyTable
from mtcd.federation.schema import Federation
from mtcd.methods.method import Method, TokenMethod
from mtcd.methods.mtcd.mtcd import MTCD
from mtcd.models.predicted import Columns
from mtcd.models.splitnet.config import SplitSection
from mtcd.network.topology import Network

BUILT_IN = {"client": "mlp", "fusion": "linear"}


class SplitPartyKind(PartyKind):
    """A network for every party, and a fusion module."""

    block_files = (WEIGHTS,)
    no_weights = "split networks do not take weights of samples. Leave the weights out."
    no_plateau = "no party of a federation knows the objective of a split network on all samples."
    labels_at_server = "the fusion module"

    def participant(self, bundle: Bundle, table: PartyTable | None) -> Participant:
        module = find("mtcd.models.splitnet.party.participant")
        return module.SplitParticipant(bundle, table)  # type: ignore[no-any-return]

    def rehearse(
        self, federation: Federation, method: Method, settled: Any, network: Network
    ) -> None:
        linear_only = method.acceleration is not None or method.loss_at_server
        if not isinstance(method, TokenMethod) or linear_only:
            raise ConfigError(
                "method: dcpa, tree-cg, acceleration and combine: optimal are for linear models. "
                "Split networks train by mtcd, stcd or svfl without them."
            )
        # The networks of others are not here, so parties cannot be made; the plan can.
        if isinstance(method, MTCD):  # plan() raises on invalid settings
            settled.plan(REHEARSED_SAMPLES, 1, network, federation.seed)

    def block(self, bundle: Bundle, run: Path) -> Block:
        read = find("mtcd.models.splitnet.party.block").read_network_block
        return read(bundle.config, bundle.code, run)  # type: ignore[no-any-return]

    def server_decides(self, bundle: Bundle, run: Path) -> Decide:
        block = self.block(bundle, run)

        def decide(sums: NDArray[np.float64], classes: Any) -> Columns:
            return block.decided(sums)

        return decide

    def packages(self, config: BundleConfig) -> tuple[str, ...]:
        return ("torch", "safetensors")

    def own_networks(self, model: Any) -> dict[str, str]:
        assert isinstance(model, SplitSection)  # the class that this kind is registered for
        return model.own_networks

    def built_in_only(self, model: ModelSection) -> ModelSection:
        own = self.own_networks(model)
        # Built-in networks check all other settings, as own code must not run at the administrator.
        return model.model_copy(update={key: BUILT_IN[key] for key in own})


SPLIT = SplitPartyKind()
