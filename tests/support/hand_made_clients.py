"""Clients of tokens, made by hand."""

import numpy as np

from mtcd.methods.mtcd.mtcd import MTCD
from mtcd.methods.mtcd.server import TokenClient
from mtcd.models.glm.model import Glm
from mtcd.network.topology import make_network
from mtcd.protocol.token import Token
from problems import make_data

MODEL = Glm("ridge", alpha=0.7)


def client_of(method: MTCD) -> TokenClient:
    """The first of three."""
    data = make_data(MODEL, 12, [3, 2, 2], seed=3)
    client = method.parties(MODEL.problem(data), make_network("complete", data.clients), 7).clients[
        0
    ]
    assert isinstance(client, TokenClient)
    return client


def arriving(index: int, length: int = 12) -> Token:
    """Each with another aggregate, so that its copy becomes another."""
    return Token(index, 0, 0, np.random.default_rng(index).standard_normal(length), 0.0)
