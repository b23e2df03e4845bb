"""Public keys of masks are signed by their owners: a server that forwards keys of its own is
refused."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("cryptography")

from federations import written
from mtcd.core.errors import WireError
from mtcd.federation.administrator import init_federation
from mtcd.federation.credentials.bundle import read_bundle
from mtcd.federation.relay_encryption import CertifiedIdentity, Seal, certify
from mtcd.methods.svfl.svfl import SVFL
from mtcd.models.glm.model import Glm
from mtcd.network.topology import make_network
from mtcd.privacy.masked.masked import with_masks
from mtcd.privacy.masked.pair_masks import new_private_key, public_key
from mtcd.privacy.masked.payloads import PublicKeys, SignedKey, SignedKeys, joined, separated
from mtcd.protocol.party import SERVER, Begin, Message, Parties
from problems import make_data

MODEL = Glm("ridge", alpha=1.0)
DATA = make_data(MODEL, 12, [2, 1, 2], seed=3)
KEY = b"k" * 32


@pytest.fixture(scope="module")
def bundles(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("federation")
    init_federation(written(folder), folder / "bundles", 90)
    return folder / "bundles"


def identity(bundles: Path, name: str, run: str = "run 1") -> CertifiedIdentity:
    bundle = read_bundle(bundles / name)
    return CertifiedIdentity(Seal(bundle), bundle.config, run)


def test_a_signature_is_for_one_key_of_one_party_in_one_run(bundles: Path) -> None:
    a, b = identity(bundles, "a"), identity(bundles, "b")
    signature = a.sign(KEY)
    b.verify(0, KEY, signature)
    refused: list[tuple[int, bytes, bytes]] = [
        (0, b"x" * 32, signature),
        (1, KEY, signature),
        (0, KEY, identity(bundles, "a", "run 2").sign(KEY)),
        (0, KEY, b.sign(KEY)),
        *((0, KEY, signature[:end]) for end in (0, 1, 2, 100, len(signature) - 1)),
        *((0, KEY, _flipped(signature, at)) for at in range(0, len(signature), 9)),
    ]
    for client, key, given in refused:
        with pytest.raises(WireError):
            b.verify(client, key, given)


def _flipped(content: bytes, at: int) -> bytes:
    return content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :]


def masked(bundles: Path) -> Parties:
    """Three clients that sign, and the server that forwards their keys."""
    network = make_network("complete", DATA.clients)
    parties = with_masks(SVFL(stepsize=0.01)).parties(MODEL.problem(DATA), network, 1)
    for k, name in enumerate("abc"):
        bundle = read_bundle(bundles / name)
        certify(parties, k, Seal(bundle), bundle.config, "run 1")
    return parties


def forwarded(parties: Parties) -> SignedKeys:
    """What an honest server sends."""
    answers: list[Message] = []
    for k, client in enumerate(parties.clients):
        [own] = client.receive(Message(SERVER, k, Begin()))
        assert isinstance(own.payload, SignedKey)
        answers = list(parties.server.receive(own))
    found = answers[0].payload
    assert isinstance(found, SignedKeys)
    return found


def test_keys_that_their_owners_have_signed_are_used(bundles: Path) -> None:
    parties = masked(bundles)
    keys = forwarded(parties)
    for k, client in enumerate(parties.clients):
        client.receive(Message(SERVER, k, keys))
        np.testing.assert_array_equal(client.public, keys.keys)  # type: ignore[attr-defined]


def unsigned(keys: SignedKeys) -> Any:
    return PublicKeys(keys.keys, keys.uploads, 0, 0)


def exchanged(keys: SignedKeys) -> Any:
    """The server in the middle: a key of its own in the place of that of b."""
    changed = keys.keys.copy()
    changed[1] = public_key(new_private_key())
    return replace(keys, keys=changed)


def swapped(keys: SignedKeys) -> Any:
    parts = [np.frombuffer(one, np.uint8) for one in separated(keys.signatures, 3)]
    return replace(
        keys, keys=keys.keys[[1, 0, 2]], signatures=joined([parts[1], parts[0], parts[2]])
    )


def cut(keys: SignedKeys) -> Any:
    return replace(keys, signatures=keys.signatures[:-40])


@pytest.mark.parametrize("false", [unsigned, exchanged, swapped, cut])
def test_a_server_in_the_middle_is_refused(
    bundles: Path, false: Callable[[SignedKeys], Any]
) -> None:
    parties = masked(bundles)
    keys = false(forwarded(parties))
    client: Any = parties.clients[0]
    with pytest.raises(WireError):
        client.receive(Message(SERVER, 0, keys))
    assert not len(client.public)  # nothing is masked with false keys, so nothing is sent


def test_a_server_that_leaves_a_key_out_is_refused_by_its_owner(bundles: Path) -> None:
    older, parties = forwarded(masked(bundles)), masked(bundles)
    forwarded(parties)
    with pytest.raises(WireError, match="do not contain the key"):
        parties.clients[0].receive(Message(SERVER, 0, older))
