"""Kits on disk, for tests; needs cryptography."""

from pathlib import Path

import pytest
from cryptography import x509

from mtcd.errors import MtcdError
from mtcd.federation.kit import read_kit

EVERYBODY = ["a", "b", "c", "server"]


def certificate(kits: Path, name: str) -> x509.Certificate:
    return x509.load_pem_x509_certificate((kits / name / "cert.pem").read_bytes())


def refused(kits: Path, name: str, *words: str) -> None:
    with pytest.raises(MtcdError) as told:
        read_kit(kits / name)
    for word in words:
        assert word in str(told.value)
    assert "PRIVATE" not in str(told.value)
