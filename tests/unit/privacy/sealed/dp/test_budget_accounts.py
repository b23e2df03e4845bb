"""What tables have spent of their privacy: entries, composition, resumed and concurrent trainings,
what is shown."""

from __future__ import annotations

import json
import multiprocessing
import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mtcd
from commands import run
from mtcd.core.errors import ConfigError, MtcdError
from mtcd.data.sources import parquet_blocks
from mtcd.data.tables import TableShare
from mtcd.privacy.sealed.dp.account import IN_MEMORY, PartyAccount
from mtcd.privacy.sealed.dp.budget import epsilon_of, plan_budget
from mtcd.privacy.sealed.dp.settings import PrivateTours
from mtcd.privacy.sealed.dp.spending import Entry, TableBudget
from mtcd.privacy.sealed.settings import SealedTours

MODEL = mtcd.Glm("logistic", l2=1.0)
DP = mtcd.DP(epsilon=3.0, tours=4, parties={"shop": 1.0})
NAMES = ("bank", "shop")
SQUARES = plan_budget(DP, NAMES).sensitivities()


def method(**changed: Any) -> PrivateTours:
    return PrivateTours(scheme="clear", dp=replace(DP, **changed))


@pytest.fixture
def tables(tmp_path: Path) -> tuple[Path, Path]:
    rng = np.random.default_rng(1)
    X = rng.standard_normal((60, 4))
    y = (X[:, 0] + X[:, 2] + rng.logistic(size=60) > 0).astype(int)
    bank, shop = tmp_path / "bank.csv", tmp_path / "shop.csv"
    rows = [
        f"{i},{a:.5f},{b:.5f},{label}"
        for i, ((a, b), label) in enumerate(zip(X[:, :2], y, strict=True))
    ]
    bank.write_text("\n".join(["id,a,b,y", *rows]))
    shop.write_text(
        "\n".join(["id,c,d", *(f"{i},{c:.5f},{d:.5f}" for i, (c, d) in enumerate(X[:, 2:]))])
    )
    return bank, shop


def read(tables: tuple[Path, Path], **more: Any) -> mtcd.VerticalData:
    bank, shop = tables
    return mtcd.read_tables(
        bank, "y", {"bank": ["a", "b"], "shop": TableShare(shop)}, id="id", **more
    )


def train(data: mtcd.VerticalData, **changed: Any) -> mtcd.Run:
    more = {
        name: changed.pop(name)
        for name in ("stop", "checkpoint", "resume", "callbacks")
        if name in changed
    }
    return mtcd.train(data, MODEL, "path", method(**changed), **more)


def spent(table: Path) -> list[tuple[int, bool]]:
    return [(entry.tours, entry.ended) for entry in TableBudget(table).entries()]


def test_every_training_is_entered_beside_each_table_and_composes_exactly(
    tables: tuple[Path, Path],
) -> None:
    data = read(tables)
    train(data)
    last = train(read(tables, prepare="auto").holdout(0.2), epsilon=2.0, delta=1e-6)
    others = plan_budget(replace(DP, epsilon=2.0, delta=1e-6), NAMES).sensitivities()
    for k, table in enumerate(tables):
        budget = TableBudget(table)
        assert budget.path == table.with_name(f"{table.name}.mtcd-budget.json")
        assert [entry.party for entry in budget.entries()] == [NAMES[k]] * 2
        assert [entry.ended for entry in budget.entries()] == [True, True]
        together = epsilon_of(np.sqrt(4 * SQUARES[k] + 4 * others[k]), 1e-6)
        assert budget.epsilon(1e-6) == pytest.approx(together)
        told = f"{table.name} has spent epsilon {together:.3g} at delta 1e-06 in 2 trainings"
        assert any(told in note for note in last.notes)
    assert TableBudget(tables[1]).entries()[0].spent == pytest.approx(1.0, rel=1e-5)


def test_a_table_with_columns_of_several_parties_counts_the_one_that_spends_most(
    tables: tuple[Path, Path],
) -> None:
    bank, _ = tables
    train(mtcd.read_tables(bank, "y", {"bank": ["a"], "shop": ["b"]}, ignore=["id"]))
    [entry] = TableBudget(bank).entries()
    assert entry.party == "bank, shop"
    assert entry.squared_mu == pytest.approx(max(SQUARES))
    assert entry.epsilon == 3.0


def test_other_kinds_of_files_have_accounts_too(tmp_path: Path, tables: tuple[Path, Path]) -> None:
    import polars as pl

    from mtcd.data.svmlight import read_svmlight

    svm, parquet = tmp_path / "rows.svm", tmp_path / "rows.parquet"
    svm.write_text("\n".join(f"{i % 2} 1:{i % 7} 2:{i % 5} 3:{i % 3} 4:1.5" for i in range(60)))
    train(read_svmlight(svm, {"bank": ["x1", "x2"], "shop": ["x3", "x4"]}))
    pl.read_csv(tables[0]).write_parquet(parquet)
    train(parquet_blocks(parquet, "y", {"bank": ["a"], "shop": ["b"]}, ["id"]).read())
    assert spent(svm) == spent(parquet) == [(4, True)]


def test_rows_of_no_file_are_counted_by_nobody_and_a_note_says_so(
    tables: tuple[Path, Path],
) -> None:
    data = replace(read(tables), tables=())
    assert IN_MEMORY in train(data).notes
    assert not TableBudget(tables[0]).path.exists()
    plain = mtcd.train(data, MODEL, "path", SealedTours(scheme="clear"), mtcd.Stop(iterations=2))
    assert IN_MEMORY not in plain.notes


def test_a_training_that_ends_early_counts_for_its_tours_and_one_that_crashes_in_full(
    tables: tuple[Path, Path],
) -> None:
    class Fails(mtcd.Callback):
        def on_measure(self, moment: Any) -> None:
            if moment.measurement.iteration == 2:
                raise RuntimeError("a crash")

    class Interrupts(mtcd.Callback):
        def on_measure(self, moment: Any) -> None:
            if moment.measurement.iteration == 1:
                raise KeyboardInterrupt

    data = read(tables)
    train(data, stop=mtcd.Stop(iterations=2))
    assert spent(tables[0]) == [(2, True)]
    with pytest.raises(MtcdError, match="a crash"):
        train(data, callbacks=[Fails()])
    assert spent(tables[0])[1:] == [(4, False)]
    stopped = train(data, callbacks=[Interrupts()])
    assert stopped.status == "interrupted"
    assert spent(tables[0])[2:] == [(2, True)]  # a tour may have begun
    with pytest.raises(ConfigError, match="must not depend on the data"):
        train(data, stop=mtcd.Stop(gap=1e-3))
    assert len(spent(tables[0])) == 3  # nothing was begun


def test_a_training_that_is_resumed_counts_once(tables: tuple[Path, Path], tmp_path: Path) -> None:
    data, folder = read(tables), tmp_path / "run"
    train(data, stop=mtcd.Stop(iterations=2), checkpoint=folder)
    assert spent(tables[1]) == [(2, True)]
    train(data, stop=mtcd.Stop(iterations=3), checkpoint=folder, resume=True)
    assert spent(tables[1]) == [(3, True)]
    train(data, checkpoint=folder, resume=True)
    assert spent(tables[1]) == [(4, True)]
    train(data, checkpoint=folder, resume=True)  # it had ended
    assert spent(tables[1]) == [(4, True)]
    train(data, checkpoint=folder)  # a new one, in its place
    train(data, checkpoint=tmp_path / "other")
    assert spent(tables[1]) == [(4, True)] * 3


def test_seeded_noise_is_entered_as_no_protection(tables: tuple[Path, Path]) -> None:
    data = read(tables)
    noted = train(data, insecure_seeded_noise=True)
    budget = TableBudget(tables[0])
    assert [entry.seeded for entry in budget.entries()] == [True]
    assert budget.epsilon(1e-5) == 0.0
    assert any(
        "not counting 1 with insecure_seeded_noise, which protect nobody" in note
        for note in noted.notes
    )


def test_a_table_is_found_through_a_link(tables: tuple[Path, Path], tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    link = tmp_path / "elsewhere" / "link.csv"
    link.symlink_to(tables[0])
    train(read((link, tables[1])))
    assert spent(link) == spent(tables[0]) == [(4, True)]
    assert os.listdir(tmp_path / "elsewhere") == ["link.csv"]


def entry(number: int) -> Entry:
    return Entry(f"{number}", "2026", "bank", 1.0, 1e-5, 4, 4, 0.01, False, "", "")


def _enter(table: Path, numbers: Sequence[int]) -> None:
    for number in numbers:
        TableBudget(table).enter(entry(number))
        TableBudget(table).settle(f"{number}", 2)


@pytest.mark.parametrize(("begun", "counted"), [(0, 0), (2, 2), (4, 4), (9, 4)])
def test_an_end_lowers_what_was_entered_and_never_raises_it(
    begun: int, counted: int, tables: tuple[Path, Path]
) -> None:
    """A training is entered with all the tours that it may take."""
    account = TableBudget(tables[0])
    for number in (1, 2):
        account.enter(replace(entry(number), planned=4, tours=4))
    account.settle("2", begun)
    first, second = account.entries()
    assert (first.tours, first.ended) == (4, False)
    assert (second.tours, second.ended) == (counted, True)


@pytest.mark.parametrize(("asked", "counted"), [(2, 4), (4, 4), (7, 7)])
def test_a_training_that_goes_on_counts_for_the_larger_of_its_numbers_of_tours(
    asked: int, counted: int, tables: tuple[Path, Path]
) -> None:
    """Those of its first part are released already."""
    account = TableBudget(tables[0])
    account.enter(entry(1))
    account.enter(entry(2))
    account.settle("2", 4)
    going_on = account.enter(replace(entry(3), tours=asked), lambda known: known.id == "2")
    assert (going_on.id, going_on.tours, going_on.ended) == ("2", counted, False)
    assert account.entries() == (entry(1), going_on)


def test_no_entry_is_lost_where_many_processes_train_on_one_table(
    tables: tuple[Path, Path],
) -> None:
    context = multiprocessing.get_context("fork")
    workers = [
        context.Process(target=_enter, args=(tables[0], range(20 * k, 20 * k + 20)))
        for k in range(4)
    ]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    found = TableBudget(tables[0]).entries()
    assert {one.id for one in found} == {str(number) for number in range(80)}
    assert all((one.tours, one.ended) == (2, True) for one in found)
    assert [path.name for path in tables[0].parent.glob(".mtcd-*")] == []


@pytest.mark.parametrize(
    "content",
    [
        "{",
        "[]",
        '{"format": 2, "trainings": []}',
        '{"format": 1, "trainings": [{"id": "a"}]}',
        json.dumps({"format": 1, "trainings": [vars(entry(1)) | {"tours": -1}]}),
        json.dumps({"format": 1, "trainings": [vars(entry(1)) | {"squared_mu": "0"}]}),
        json.dumps({"format": 1, "trainings": [vars(entry(1)) | {"seeded": 0}]}),
        json.dumps({"format": 1, "trainings": [vars(entry(1)) | {"tours": True}]}),
        json.dumps({"format": 1, "trainings": [vars(entry(1)) | {"delta": 1}]}),
    ],
)
def test_an_account_that_cannot_be_read_ends_all_and_stays(
    tables: tuple[Path, Path], content: str
) -> None:
    budget = TableBudget(tables[0])
    budget.path.write_text(content)
    with pytest.raises(MtcdError, match="which counts what bank.csv has spent, cannot be read"):
        train(read(tables))
    assert budget.path.read_text() == content


def test_an_account_that_cannot_be_written_ends_the_training(
    tables: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    data = read(tables)
    monkeypatch.setattr("mtcd.privacy.sealed.dp.spending.os.open", _denied)
    with pytest.raises(ConfigError, match="what bank.csv spends must be counted"):
        train(data)


def _denied(path: Any, *_: Any) -> int:
    raise PermissionError(13, "Permission denied")


def test_a_party_enters_a_run_once_and_keeps_it_in_its_bundle_if_it_must(
    tables: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bundle, network = tmp_path / "bundle", mtcd.make_network("path", NAMES)
    bundle.mkdir()
    account = PartyAccount(method(), network, 1, tables[1], bundle)
    for _ in range(2):  # it is restarted
        account.begin("r1", 4, "run")
    assert spent(tables[1]) == [(4, False)]
    assert "shop.csv has spent epsilon" in account.end("r1", 3)
    PartyAccount(method(), network, 1, tables[1], bundle).begin("r1", 4, "run")  # after its end
    assert spent(tables[1]) == [(3, True)]
    [known] = TableBudget(tables[1]).entries()
    assert known.squared_mu == pytest.approx(SQUARES[1])

    opened = os.open
    beside = str(tables[0].parent)
    monkeypatch.setattr(
        "mtcd.privacy.sealed.dp.spending.os.open",
        lambda path, *rest: (
            _denied(path) if os.path.dirname(path) == beside else opened(path, *rest)
        ),
    )
    other = PartyAccount(method(), network, 0, tables[0], bundle)
    other.begin("r2", 4, "run")
    assert str(bundle) in other.end("r2", 4)
    assert not TableBudget(tables[0]).path.exists()
    assert TableBudget(tables[0], bundle).epsilon(1e-5) == pytest.approx(
        epsilon_of(np.sqrt(4 * SQUARES[0]), 1e-5)
    )


def test_what_was_spent_is_shown(
    tables: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    config = tables[0].with_name("private.yaml")
    config.write_text(
        f"data: {{table: {tables[0]}, label: y, id: id, clients: {{bank: [a, b], shop: {{table: "
        f"{tables[1]}}}}}}}\n"
        "model: {kind: logistic, l2: 1}\nnetwork: {kind: path}\nmethod: {kind: mtcd, walk: tour}\n"
        "privacy: {mode: sealed, dp: {epsilon: 3, tours: 4, parties: {shop: 1}}}\n"
    )
    data = read(tables)
    train(data)
    train(data, insecure_seeded_noise=True)
    run("inspect", str(config), "--json")
    found = json.loads(capsys.readouterr().out)["privacy"]["tables"]
    assert list(found) == [str(table) for table in tables]
    shop = found[str(tables[1])]
    assert (shop["trainings"], shop["spent"]) == (1, pytest.approx(1.0, rel=1e-5))
    assert shop["spent_with_this"] == pytest.approx(epsilon_of(np.sqrt(8 * SQUARES[1]), 1e-5))
    run("inspect", str(config))
    assert "shop.csv: 1 before (1), 1.47 with this one" in " ".join(capsys.readouterr().out.split())

    run("budget", str(tables[1]), "--delta", "1e-7", "--json")
    [told] = json.loads(capsys.readouterr().out)
    assert told["epsilon"] == pytest.approx(epsilon_of(np.sqrt(4 * SQUARES[1]), 1e-7))
    assert [one["epsilon"] is None for one in told["trainings"]] == [False, True]
    tables[1].write_text(tables[1].read_text() + "\n")
    run("budget", *map(str, tables), str(config))
    shown = " ".join(capsys.readouterr().out.split())
    assert (
        "shop.csv has spent epsilon 1 at delta 1e-05 in 1 training, not counting 1 that protect "
        "nobody." in shown
    )
    run("budget", *map(str, tables), "--json")
    same = [
        [one["same_content"] for one in told["trainings"]]
        for told in json.loads(capsys.readouterr().out)
    ]
    assert same == [[True, True], [False, False]]
    assert "no training with differential privacy." in shown
    for wrong in (
        ["nothing.csv"],
        [str(tables[0]), "--delta", "0"],
        [str(tables[0]), "--delta", "nan"],
    ):
        assert run("budget", *wrong) == 2
