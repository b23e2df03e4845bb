import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

relaxed = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True)
settings.register_profile("explore", relaxed)
settings.register_profile("repeat", relaxed, derandomize=True)  # what passed once passes again
settings.load_profile("repeat" if os.environ.get("CI") else "explore")


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
