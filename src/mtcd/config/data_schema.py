"""The section ``data`` of a config: tables, svmlight files, synthetic data, public data sets."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Discriminator, Field, Tag, model_validator

from mtcd.config.keys import Number, Whole
from mtcd.config.section import Count, Fraction, Section, Seed
from mtcd.data.datasets.entry import Forecast
from mtcd.data.svmlight import is_svmlight
from mtcd.errors import MtcdError
from mtcd.prepare import read_recipe


def _names(value: Any) -> Any:
    """One name is a list of one."""
    names = [value] if isinstance(value, str) else value
    if not names or not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise ValueError("should be the name of a data set, or a list of names")
    return names


def _prepare(value: Any) -> Any:
    """Check a recipe; it stays as it was written."""
    try:
        read_recipe(value)
    except MtcdError as error:
        raise ValueError(str(error).removeprefix("prepare: ")) from None
    return value


def _class(value: Any) -> Any:
    if isinstance(value, bool):
        raise ValueError(
            "write the class in quotes, such as 'yes': without them, YAML reads yes and no as true and false"
        )
    return value


OF_TABLES = ("label", "id", "weight", "prepare")  # keys that a file of another format has no use for
Prepare = Annotated[Any, AfterValidator(_prepare)]
Class = Annotated[str | int | float, BeforeValidator(_class)]


class OwnTable(Section):
    """A client that brings its own table; without columns, all of them."""

    table: Path
    columns: list[str] | None = None


class FileData(Section):
    """The keys of samples in files, whatever their format."""

    table: Path
    clients: Count | dict[str, list[str] | OwnTable]
    ignore: list[str] = Field(default_factory=list)
    positive: Class | None = None  # of two classes: the second in sorted order, unless given
    standardise: bool = False
    test_samples: Count | None = None  # held out
    holdout: Fraction | None = None


class TableData(FileData):
    """Features and labels from CSV or Parquet."""

    label: str
    id: str | None = None
    weight: str | None = None  # the column with the weights of the samples
    prepare: Prepare | None = None  # 'auto', or {columns: ..., default: ..., on_unseen: ...}: see mtcd.prepare


class SparseData(FileData):
    """Features and labels from a file in the svmlight (libsvm) format."""

    features: Count | None = None  # where the file does not use the last ones

    @model_validator(mode="before")
    @classmethod
    def _labels_are_inside(cls, given: Any) -> Any:
        if not isinstance(given, dict):
            return given
        if extra := [key for key in ("label", "id", "weight") if given.get(key)]:
            raise ValueError(f"the labels are in an svmlight file, with nothing else: leave out {' and '.join(extra)}")
        if given.get("prepare"):
            raise ValueError("an svmlight file holds numbers only: leave out prepare")
        clients = given.get("clients")
        if isinstance(clients, dict) and any(isinstance(share, dict) for share in clients.values()):
            raise ValueError("an svmlight file cannot be joined with other tables: give lists of columns as clients")
        return {key: value for key, value in given.items() if key not in OF_TABLES}


class SyntheticData(Section):
    """Data made from the seed."""

    synthetic: str
    samples: Count
    features: Count
    clients: Count
    noise: Number = 0.1
    classes: Whole = 3
    standardise: bool = False
    test_samples: Count | None = None  # more of the same
    holdout: Fraction | None = None
    seed: Seed | None = None  # the config's own, unless given


class ForecastSection(Section):
    """What is predicted of a series: see mtcd.Forecast."""

    target: str = Forecast.target
    hours: Count = Forecast.hours
    year: Count = Forecast.year


class DatasetData(Section):
    """A public data set, or the first of several that is at hand: see mtcd.load_dataset."""

    dataset: Annotated[list[str], BeforeValidator(_names)]
    clients: Count
    samples: Count | None = None
    features: Count | None = None
    forecast: ForecastSection | None = None  # of series
    standardise: bool = False
    test_samples: Count | None = None  # a part of the test set; of a table, held out
    holdout: Fraction | None = None
    seed: Seed = 0  # not the config's own: a data set is the same in every run


def _data_kind(value: Any) -> str:
    given = value if isinstance(value, dict) else getattr(value, "model_fields_set", ())
    # no words that could be keys
    if "synthetic" in given or "dataset" in given:
        return "<synthetic>" if "synthetic" in given else "<dataset>"
    table = value.get("table", "") if isinstance(value, dict) else getattr(value, "table", "")
    return "<sparse>" if is_svmlight(Path(str(table))) else "<table>"


DataSection = Annotated[
    Annotated[TableData, Tag("<table>")]
    | Annotated[SparseData, Tag("<sparse>")]
    | Annotated[SyntheticData, Tag("<synthetic>")]
    | Annotated[DatasetData, Tag("<dataset>")],
    Discriminator(_data_kind),
]
