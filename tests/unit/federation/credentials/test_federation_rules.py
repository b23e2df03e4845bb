"""Who calls whom, and who is admitted, as bundles say."""

from pathlib import Path

import pytest

from bundles_on_disk import called, found, listening
from mtcd.federation.administrator import renew, revoke
from mtcd.federation.credentials.bundle import read_bundle
from mtcd.federation.transport import admitted


@pytest.fixture
def bundles(tmp_path: Path) -> Path:
    return found(tmp_path)


def who(bundles: Path, name: str) -> dict[str, str]:
    return admitted(read_bundle(bundles / name).config)


def test_every_link_is_called_from_one_side(bundles: Path) -> None:
    names = ("a", "b", "c", "server")
    pairs = [{name, other} for name in names for other in called(bundles, name)]
    wanted = [{"a", "b"}, {"b", "c"}, {"a", "server"}, {"b", "server"}, {"c", "server"}]
    assert len(pairs) == 5
    assert all(pair in pairs for pair in wanted)
    for name in names:
        for other, address in called(bundles, name).items():
            assert listening(bundles, other) == address


def test_each_admits_its_peers_and_the_operator_under_their_own_names(bundles: Path) -> None:
    assert who(bundles, "a") == {one: one for one in ("b", "server", "operator")}
    assert who(bundles, "b") == {one: one for one in ("a", "c", "server", "operator")}
    assert who(bundles, "server") == {one: one for one in ("a", "b", "c", "operator")}


def test_a_revoked_name_is_admitted_no_more_and_called_no_more(bundles: Path) -> None:
    revoke(bundles, "a")
    assert who(bundles, "b") == {one: one for one in ("c", "server", "operator")}
    assert "a" not in called(bundles, "b")
    renew(bundles, "a", 90)
    assert who(bundles, "b") == {"a~2": "a", "c": "c", "server": "server", "operator": "operator"}
    assert "a" in called(bundles, "b")


def test_the_operator_calls_all_and_listens_nowhere(bundles: Path) -> None:
    assert listening(bundles, "operator") is None
    assert set(called(bundles, "operator")) == {"a", "b", "c", "server"}
    revoke(bundles, "operator")
    assert "operator" not in who(bundles, "b")
