"""Numbers in a file that is of another training."""

import stat
from pathlib import Path

import pytest

from mtcd.core.errors import MtcdError
from mtcd.federation.delivery.journal import mapped_numbers


@pytest.mark.parametrize("size", [0, 47, 49, 96])
def test_a_file_of_another_size_is_refused_and_stays(size: int, tmp_path: Path) -> None:
    path = tmp_path / "numbers"
    assert mapped_numbers(path, (2, 3), True).shape == (2, 3)
    path.write_bytes(bytes(size))
    with pytest.raises(MtcdError, match=rf"{path} is not of this training: put back the file"):
        mapped_numbers(path, (2, 3), False)
    assert path.read_bytes() == bytes(size)


def test_numbers_are_for_their_owner_only_and_start_at_zero(tmp_path: Path) -> None:
    path = tmp_path / "numbers"
    assert mapped_numbers(path, (2, 3), True).tolist() == [[0.0] * 3] * 2
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    mapped_numbers(path, (2, 3), False)[1, 2] = 5.0
    assert mapped_numbers(path, (2, 3), False)[1].tolist() == [0.0, 0.0, 5.0]
    assert mapped_numbers(path, (2, 3), True).sum() == 0.0
