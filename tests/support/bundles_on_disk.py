"""Bundles on disk, for tests; needs cryptography."""

from pathlib import Path

import pytest
from cryptography import x509

from federations import written
from mtcd.core.errors import MtcdError
from mtcd.federation.administrator import init_federation
from mtcd.federation.credentials.bundle import read_bundle
from mtcd.federation.transport import calls, listens_at
from ports import reserved_ports

EVERYBODY = ["a", "b", "c", "server", "operator"]


def certificate(bundles: Path, name: str) -> x509.Certificate:
    return x509.load_pem_x509_certificate((bundles / name / "cert.pem").read_bytes())


def refused(bundles: Path, name: str, *words: str) -> None:
    with pytest.raises(MtcdError) as told:
        read_bundle(bundles / name)
    for word in words:
        assert word in str(told.value)
    assert "PRIVATE" not in str(told.value)


def found(folder: Path) -> Path:
    """A federation on free ports of this machine: a path of three, and a server."""
    folder.mkdir(exist_ok=True)
    places = dict(
        zip(
            ["a", "b", "c", "server"],
            [f"127.0.0.1:{port}" for port in reserved_ports(4)],
            strict=True,
        )
    )
    server = places.pop("server")
    init_federation(
        written(folder, parties=places, server=server, labels__column=None), folder / "bundles", 90
    )
    return folder / "bundles"


def listening(bundles: Path, name: str) -> str | None:
    """Where the owner of a bundle listens."""
    return listens_at(read_bundle(bundles / name).config)


def called(bundles: Path, name: str) -> dict[str, str]:
    """The addresses that the owner of a bundle calls, by peer."""
    return calls(read_bundle(bundles / name).config)
