"""What must hold of split networks: they are those of a training in one process that nothing
befell."""

from __future__ import annotations

import numpy as np

from faulty.federation import Faulty
from mtcd.data.dataset import VerticalDataset
from mtcd.federation.credentials.bundle import read_kit
from mtcd.federation.participant.node_table import settings_of
from mtcd.models.splitnet.config import split_model
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
    kits = {name: read_kit(faulty.kits / name) for name in faulty.names}
    first = kits[faulty.parties[0]]
    config = first.config
    method, stop, costs = settings_of(config)
    model = split_model(section_of(config), data, config.seed, config.standardise)
    same = train(data, model, config.network, method, stop, costs, config.seed)
    for name, kit in kits.items():
        block = read_network_block(kit.config, kit.code, faulty.run_folder(name))
        assert block.knows_fusion
        assert_same_modules(block.trained.fusion, same.fusion)
        if not kit.config.is_server:
            assert_same_modules(block.trained.modules[name], same.modules[name])
