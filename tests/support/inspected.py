"""What mtcd inspect prints."""

from __future__ import annotations

from pathlib import Path

import pytest

from mtcd.cli.app import main

CONFIG = """
data: {{synthetic: ridge, samples: 20, features: {K}, clients: {K}}}
model: {{kind: ridge, alpha: 1}}
network: {{kind: {kind}}}
method: {{{method}}}
"""


def said(where: Path, *options: str, K: int = 4, kind: str = "path", method: str) -> int:
    (where / "config.yaml").write_text(CONFIG.format(K=K, kind=kind, method=method))
    with pytest.raises(SystemExit) as ended:
        main(["inspect", str(where / "config.yaml"), *options])
    return int(ended.value.code or 0)
