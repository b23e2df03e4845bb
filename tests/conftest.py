import os
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import HealthCheck, settings

# tests that need a package of an extra: where it is missing, they are not collected
NEEDED = {
    "contract/*": "cryptography",
    "processes/operations/*": "cryptography",
    "unit/federation/test_*.py": "cryptography",
    "unit/federation/commands/*": "cryptography",
    "unit/federation/connections/*": "cryptography",
    "unit/federation/credentials/*": "cryptography",
    "unit/federation/node/*": "cryptography",
    "unit/federation/participant/*": "cryptography",
    "unit/models/splitnet/*": "torch",
    "unit/models/trees/test_mixed_families.py": "torch",
}
collect_ignore_glob = [files for files, package in NEEDED.items() if find_spec(package) is None]

SUPPORT = Path(__file__).with_name("support")
# assertions of helpers say what they compared, as those of tests do
pytest.register_assert_rewrite(*(path.stem for path in SUPPORT.glob("*.py")))

from counted_time import counted_time as counted_time  # noqa: E402  a fixture
from table_files import MAIN  # noqa: E402

relaxed = settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True
)
settings.register_profile("repeat", relaxed, derandomize=True)  # what passed once passes again
settings.register_profile("fresh", relaxed, derandomize=False)  # `make fresh`
settings.load_profile("repeat")


@pytest.fixture(autouse=True, scope="session")
def _own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Keep the optima of the tests out of the user's cache."""
    folder = tmp_path_factory.mktemp("cache")
    before = os.environ.get("MTCD_CACHE")
    os.environ["MTCD_CACHE"] = str(folder)
    yield folder
    if before is None:
        del os.environ["MTCD_CACHE"]
    else:
        os.environ["MTCD_CACHE"] = before


@pytest.fixture
def put(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Writes files into the working folder, so that messages show bare file names."""
    monkeypatch.chdir(tmp_path)

    def write(name: str, content: str | bytes | dict[str, Any]) -> Path:
        path = Path(name)
        if isinstance(content, dict):
            pl.DataFrame(content).write_parquet(path)
        else:
            path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    write("main.csv", MAIN)
    return write
