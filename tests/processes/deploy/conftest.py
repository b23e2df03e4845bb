"""The image, built once for all tests."""

import pytest

from roots import Image, skip_where_not_allowed


@pytest.fixture(scope="session")
def image(tmp_path_factory: pytest.TempPathFactory) -> Image:
    folder = tmp_path_factory.mktemp("image")
    for parent in (folder, *folder.parents):
        if parent.stat().st_uid == 0 and parent.name.startswith("pytest"):
            parent.chmod(0o711)
    skip_where_not_allowed(folder)
    return Image(folder)
