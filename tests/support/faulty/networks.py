"""What must hold of split networks: they are those of a training in one process that nothing
befell."""

from __future__ import annotations

import numpy as np

from faulty.federation import Faulty
from mtcd.data.dataset import VerticalDataset
from mtcd.federation.credentials.bundle import read_bundle
from mtcd.federation.participant.node_table import settings_of
from mtcd.models.splitnet.configured import split_model
from mtcd.models.splitnet.party.block import read_network_block
from mtcd.models.splitnet.party.networks import section_of
from mtcd.training.train import train
from split_problems import assert_same_modules


def check_networks(faulty: Faulty) -> None:
    """Every module, and theta_0 at everybody."""
    drawn = faulty.plan.data
    data = VerticalDataset(
        dict(zip(drawn.clients, map(np.asarray, drawn.blocks), strict=True)), drawn.labels
    )
    bundles = {name: read_bundle(faulty.bundles / name) for name in faulty.names}
    first = bundles[faulty.parties[0]]
    config = first.config
    method, stop, costs = settings_of(config)
    model = split_model(section_of(config), data, config.seed, config.standardise)
    same = train(data, model, config.network, method, stop, costs, config.seed)
    for name, bundle in bundles.items():
        block = read_network_block(bundle.config, bundle.code, faulty.run_folder(name))
        assert block.knows_fusion
        assert_same_modules(block.trained.fusion, same.fusion)
        if not bundle.config.is_server:
            assert_same_modules(block.trained.modules[name], same.modules[name])
