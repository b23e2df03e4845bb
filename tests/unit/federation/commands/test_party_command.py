"""What mtcd party, server and predict refuse before they take part: another role's bundle, a link
in the place of a run folder, samples that are missing."""

from collections.abc import Iterator
from pathlib import Path
from signal import SIGTERM, getsignal, signal
from typing import Any

import pytest

from bundles_on_disk import found
from mtcd.core.errors import ConfigError, MtcdError
from mtcd.federation.commands.party import PartyOptions, PredictOptions, predict, run_party
from mtcd.federation.node import refusing

WITHOUT_SAMPLES: dict[str, Any] = {"data": None, "id": None, "run": None, "code": (), "agreed": ()}


@pytest.fixture(scope="module")
def bundles(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return found(tmp_path_factory.mktemp("party"))


@pytest.fixture(autouse=True)
def _signals() -> Iterator[None]:
    """The commands catch SIGTERM for their whole process."""
    before = getsignal(SIGTERM)
    yield
    signal(SIGTERM, before)


def options(bundle: Path) -> PredictOptions:
    return PredictOptions(bundle=bundle, out=bundle / "out.csv", quiet=True, **WITHOUT_SAMPLES)


@pytest.mark.parametrize(
    ("name", "server", "command"),
    [
        ("a", True, "mtcd party"),
        ("server", False, "mtcd server"),
        ("operator", False, "mtcd federation status"),
        ("operator", True, "mtcd federation status"),
    ],
)
def test_the_bundle_of_another_command_is_refused_with_its_name(
    name: str, server: bool, command: str, bundles: Path
) -> None:
    with pytest.raises(ConfigError, match=rf"is the bundle of {name}: use {command} with it"):
        run_party(PartyOptions(bundles / name), server)


def test_a_party_without_its_table_says_so_to_all_and_does_not_begin(
    bundles: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[Any] = []
    monkeypatch.setattr(refusing, "refuse", lambda *given: told.append(given[2]))
    with pytest.raises(MtcdError, match="--data") as refused:
        run_party(PartyOptions(bundles / "a", quiet=True))
    [reasons] = told
    assert [own for own, _ in reasons] == [one.sentence for one in refused.value.failures]  # type: ignore[attr-defined]
    assert not (bundles / "a" / "run").exists()


def test_a_run_folder_that_came_as_a_link_is_refused(tmp_path: Path) -> None:
    """A bundle comes from the administrator, who must not choose what is overwritten."""
    bundle, elsewhere = found(tmp_path / "f") / "a", tmp_path / "elsewhere"
    elsewhere.mkdir()
    (bundle / "run").symlink_to(elsewhere)
    with pytest.raises(ConfigError, match=r"run is a symbolic link.*--out, or --run"):
        run_party(PartyOptions(bundle, quiet=True))
    with pytest.raises(ConfigError, match="run is a symbolic link"):
        predict(options(bundle))
    assert list(elsewhere.iterdir()) == []


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("operator", "is the operator's bundle, which cannot predict"),
        ("a", "Which new samples.*--data new.csv"),
        ("server", "Predictions go to b .*do not start it"),
    ],
)
def test_who_cannot_predict_is_told(name: str, told: str, bundles: Path) -> None:
    with pytest.raises(MtcdError, match=told):
        predict(options(bundles / name))
