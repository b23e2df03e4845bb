"""Beijing's air: read as published, nothing of the future in a forecast, and the federation finds
the closed form."""

import csv
import itertools
import subprocess
import sys
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import mtcd
from mtcd.config.build import build
from mtcd.config.read import read_config
from mtcd.core.errors import ConfigError, DataError
from mtcd.models.glm.config import linear_parts
from mtcd_experiments.datasets import beijing_air
from mtcd_experiments.datasets.air_forecast import forecast
from mtcd_experiments.datasets.catalogue import is_present
from mtcd_experiments.datasets.entry import RawSeries
from mtcd_experiments.datasets.folder import find_all
from project import ROOT

REAL = is_present("beijing-air")  # before the tests name folders of their own
EXAMPLE = ROOT / "examples" / "beijing_air"
STATIONS, MEASURED, HOURS = tuple(beijing_air.POSITIONS), beijing_air.MEASURED, beijing_air.HOURS
TIMES = pd.date_range("2013-03-01", "2017-02-28 23:00", freq="h")


@cache
def arrays() -> Mapping[str, Any]:
    """Made-up measurements of one decimal, with gaps; the same air moves over all stations."""
    rng = np.random.default_rng(0)
    common = np.repeat(rng.gamma(2, 40, HOURS // 12), 12)[:, None, None]
    X = np.round(
        common * rng.uniform(0.5, 1.5, (1, 12, 11)) + rng.uniform(1, 30, (HOURS, 12, 11)), 1
    )
    X[rng.random(X.shape) < 0.02] = np.nan
    X[1000:1100, 3] = np.nan  # longer than a measurement stands in
    return {
        "X": X.astype(np.float32),
        "wd": rng.integers(-1, 16, (HOURS, 12)).astype(np.int8),
        "time": np.stack([TIMES.year, TIMES.month, TIMES.day, TIMES.hour], axis=1).astype(np.int16),
        "stations": np.array(STATIONS),
        "channels": np.array(MEASURED),
    }


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("air")
    np.savez(folder / beijing_air.COPY, **arrays())
    return folder


@pytest.fixture
def folder(made: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("MTCD_DATA", str(made))
    return made


@pytest.fixture(scope="module")
def raw(made: Path) -> RawSeries:
    return beijing_air.read({beijing_air.COPY: made / beijing_air.COPY})


def write_originals(folder: Path, given: Mapping[str, Any]) -> None:
    """The files of the UCI repository, by their description."""
    for k, station in enumerate(STATIONS):
        columns = {
            "No": np.arange(1, HOURS + 1),
            **{
                name: given["time"][:, j] for j, name in enumerate(("year", "month", "day", "hour"))
            },
            **{name: given["X"][:, k, j].astype(float).round(1) for j, name in enumerate(MEASURED)},
            "wd": [beijing_air.COMPASS[c] if c >= 0 else None for c in given["wd"][:, k].tolist()],
            "station": [station] * HOURS,
        }
        table = pl.DataFrame(columns).fill_nan(None)
        table.write_csv(folder / f"PRSA_Data_{station}_20130301-20170228.csv", null_value="NA")


@pytest.mark.long
def test_the_files_of_the_repository_and_their_copy_say_the_same(
    raw: RawSeries, tmp_path: Path
) -> None:
    write_originals(tmp_path, arrays())
    original = beijing_air.read({name: tmp_path / name for name in beijing_air.ORIGINALS})
    np.testing.assert_allclose(original.values, raw.values, rtol=1e-6, atol=1e-5)
    assert np.isnan(raw.values).any()


def test_a_wind_from_the_south_west_is_one_from_neither_north_nor_east(raw: RawSeries) -> None:
    given = arrays()
    hour, station = np.argwhere(
        (given["wd"] == beijing_air.COMPASS.index("SW")) & ~np.isnan(given["X"][:, :, 10])
    )[0]
    expected = -given["X"][hour, station, 10] / np.sqrt(2)
    assert raw.values[hour, station, 11:] == pytest.approx([expected, expected])


def test_columns_and_labels_are_those_that_pandas_makes(raw: RawSeries) -> None:
    data = forecast(raw, mtcd.Forecast("Dongsi", 6), 12)
    station = STATIONS.index("Dongsi")
    series = pd.DataFrame(raw.values[:, station], index=TIMES, columns=list(raw.channels))
    means = series[:"2016-02-29 23:00"].mean()
    filled = series.ffill(limit=12).fillna(means)
    later = series["PM2.5"].shift(-6)
    known = later.notna() & (TIMES[24] <= TIMES)
    training = later[known & (TIMES < "2016-02-29 18:00")]
    testing = later[known & (TIMES >= "2016-03-01")]
    np.testing.assert_array_equal(data.labels, training)
    np.testing.assert_array_equal(data.test.labels, testing)
    for channel, lag in itertools.product(("PM2.5", "DEWP", "wind.east"), (0, 3, 24)):
        column = data.columns[station].index(f"Dongsi.{channel}" + (f"-{lag}h" if lag else ""))
        shifted = filled[channel].shift(lag)
        np.testing.assert_allclose(data.blocks[station][:, column], shifted[training.index])
        np.testing.assert_allclose(data.test.blocks[station][:, column], shifted[testing.index])
    clock = data.columns[station].index("Dongsi.hour.cos")
    hours = (training.index + pd.Timedelta(hours=6)).hour
    np.testing.assert_allclose(
        data.blocks[station][:, clock], np.cos(2 * np.pi * hours / 24), atol=1e-9
    )
    assert [len(names) for names in data.columns] == [
        84 if name == "Dongsi" else 78 for name in STATIONS
    ]


def test_nothing_of_the_test_year_reaches_the_training(raw: RawSeries) -> None:
    asked = mtcd.Forecast("Tiantan", 12, year=2015)
    before = forecast(raw, asked, 2)
    start = TIMES.get_loc("2015-03-01 00:00")
    later = raw.values.copy()
    later[start:] *= 3.0
    assert (
        before.fingerprint
        == forecast(RawSeries(**{**vars(raw), "values": later}), asked, 2).fingerprint
    )
    # a sample to test on knows what was measured until then, and nothing later
    rows, changed = 400, raw.values.copy()
    changed[start + rows + 12 :] *= 3.0
    again = forecast(RawSeries(**{**vars(raw), "values": changed}), asked, 2).test
    for known, unchanged in zip(before.test.blocks, again.blocks, strict=True):
        np.testing.assert_array_equal(known[: rows // 2], unchanged[: rows // 2])
        assert (known[-1] != unchanged[-1]).any()


@pytest.mark.usefixtures("folder")
def test_the_clients_are_the_target_and_the_stations_nearest_to_it() -> None:
    asked = mtcd.Forecast("Huairou", 24)
    assert mtcd.load_dataset("beijing-air", clients=1, forecast=asked).clients == ("Huairou",)
    data = mtcd.load_dataset("beijing-air", clients=3, samples=50, test_samples=7, forecast=asked)
    assert data.clients == ("Dingling", "Huairou", "Shunyi")
    assert (data.samples, data.test.samples) == (50, 7)
    assert "24 hours ahead" in data.notes[0]
    assert "50 samples and 7 test samples" in data.notes[0]


@pytest.mark.usefixtures("folder")
def test_what_cannot_be_asked_for_is_refused() -> None:
    def load(**given: Any) -> None:
        mtcd.load_dataset(**{"name": "beijing-air", "clients": 2, **given})

    with pytest.raises(DataError, match=r"no station 'dongsy': did you mean 'Dongsi'"):
        load(forecast=mtcd.Forecast("dongsy"))
    for year in (2013, 2017, 99_999):
        with pytest.raises(DataError, match="must be 2014 to 2016"):
            load(forecast=mtcd.Forecast(year=year))
    with pytest.raises(DataError, match="ask for fewer hours"):
        load(forecast=mtcd.Forecast(hours=9000))
    with pytest.raises(ConfigError, match=r"forecast\.hours must be 1 or more"):
        mtcd.Forecast(hours=0)
    with pytest.raises(DataError, match="12 stations, fewer than 13"):
        load(clients=13)
    with pytest.raises(DataError, match="leave 'features' out"):
        load(features=3)
    with pytest.raises(DataError, match="'basehock' has nothing to forecast"):
        load(name="basehock", forecast=mtcd.Forecast())


@pytest.mark.parametrize("change", ["hours", "stations", "shape", "negative", "wind"])
def test_other_files_are_refused(change: str, tmp_path: Path) -> None:
    given = dict(arrays())
    match change:
        case "hours":
            given["time"] = given["time"] + [0, 0, 0, 1]
        case "stations":
            given["stations"] = given["stations"][::-1]
        case "shape":
            given["X"] = given["X"][1:]
        case "negative":
            given["X"] = -given["X"]
        case "wind":
            given["wd"] = given["wd"] + np.int8(1)
    path = tmp_path / beijing_air.COPY
    np.savez(path, **given)
    with pytest.raises(DataError, match="damaged or another version"):
        beijing_air.read({beijing_air.COPY: path})


def test_tables_of_other_stations_are_refused(tmp_path: Path) -> None:
    files = {name: tmp_path / name for name in beijing_air.ORIGINALS}
    for text in ("No,year\n1,2013\n", "", "year,month,day,hour,wd\n"):
        files[beijing_air.ORIGINALS[0]].write_text(text)
        with pytest.raises(DataError, match="damaged or another version"):
            beijing_air.read(files)


def test_stations_are_linked_unless_a_third_is_between_them() -> None:
    """The circle on the line between two neighbours holds no other station: a Gabriel graph, which
    is connected."""
    places = np.array(list(beijing_air.POSITIONS.values())) * [np.cos(np.radians(40.03)), 1]
    expected = set()
    for i, j in itertools.combinations(range(12), 2):
        middle, radius = (places[i] + places[j]) / 2, np.linalg.norm(places[i] - places[j]) / 2
        others = [np.linalg.norm(places[k] - middle) for k in range(12) if k not in (i, j)]
        expected |= {(STATIONS[i], STATIONS[j])} if min(others) > radius else set()
    with open(EXAMPLE / "links.csv", newline="") as file:
        assert {(row["source"], row["target"]) for row in csv.DictReader(file)} == expected


def the_federation_finds_the_closed_form(samples: int | None) -> None:
    """The config of the page, trained by tokens, against scikit-learn on the table of all
    stations."""
    config = read_config(
        EXAMPLE / "config.yaml", [f"data.samples={samples or 'null'}", "stop.gap=1e-9"]
    )
    setup = build(config)
    data, model = linear_parts(setup)
    run = setup.train()
    assert run.status == "converged"
    joint = make_pipeline(StandardScaler(), Ridge(alpha=model.l2_weight)).fit(
        np.hstack(data.blocks), data.labels
    )
    expected = joint.predict(np.hstack(data.test.blocks))
    assert np.abs(run.predict(data.test) - expected).max() < 1e-3 * expected.std()


@pytest.mark.usefixtures("folder")
def test_a_federation_on_made_up_air_finds_the_closed_form() -> None:
    the_federation_finds_the_closed_form(samples=800)


@pytest.mark.real_data
@pytest.mark.skipif(not REAL, reason="beijing-air is not in the folder that MTCD_DATA names")
def test_a_federation_on_the_real_air_finds_the_closed_form() -> None:
    the_federation_finds_the_closed_form(samples=3000)


@pytest.mark.real_data
@pytest.mark.skipif(not REAL, reason="beijing-air is not in the folder that MTCD_DATA names")
def test_the_real_air_has_the_sizes_that_its_makers_state() -> None:
    found = find_all("beijing_air", beijing_air.BEIJING_AIR.files)
    assert found is not None
    raw = beijing_air.read(found)
    assert raw.values.shape == (35_064, 12, 13)
    assert np.isnan(raw.values[:, 0, 0]).sum() == 925  # PM2.5 at Aotizhongxin


@pytest.mark.long
@pytest.mark.usefixtures("folder")
def test_the_worked_case_runs_from_the_data_to_the_pictures(tmp_path: Path) -> None:
    command = [sys.executable, str(EXAMPLE), "--quick", "--seeds", "1", "--out", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    difference = float(done.stdout.split("test year: ")[1].split()[0])
    assert difference < 0.01
    for name in ("map", "stations", "curves", "days"):
        assert (tmp_path / f"beijing-air-{name}.png").read_bytes().startswith(b"\x89PNG")
    trained = pl.read_csv(tmp_path / "beijing-air-methods.csv")
    together = (
        pl.read_csv(tmp_path / "beijing-air-accuracy.csv")
        .filter(pl.col("model") == "together")["rmse"]
        .item()
    )
    assert set(trained["status"]) == {"converged"}
    assert trained["rmse"].to_list() == pytest.approx([together] * 6, rel=0.02)
    without_server = trained.filter(pl.col("method").str.contains("no server"))
    assert without_server["server_messages"].to_list() == [0, 0, 0]
