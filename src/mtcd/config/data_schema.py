"""The section ``data`` of a config: tables, svmlight files, synthetic data, public data sets."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Discriminator, Field, Tag, model_validator

from mtcd.config.numbers import Number, Whole
from mtcd.config.section import Count, Fraction, Section, Seed
from mtcd.core.errors import MtcdError
from mtcd.data.prepare import read_recipe
from mtcd.data.svmlight import is_svmlight
from mtcd_experiments.datasets.entry import Forecast


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
            "write the class in quotes, such as 'yes': without them, YAML reads yes and no as true "
            "and false"
        )
    return value


# keys that a file of another format has no use for
OF_TABLES = ("label", "id", "weight", "prepare")
Prepare = Annotated[Any, AfterValidator(_prepare)]
Class = Annotated[str | int | float, BeforeValidator(_class)]


class OwnTable(Section):
    """A client that brings its own table; without columns, all of them."""

    table: Path
    """the client's own table, joined on `id`"""
    columns: list[str] | None = None
    """its columns that are features; all of them unless given"""


class FileData(Section):
    """The keys of samples in files, whatever their format."""

    table: Path
    """the table that holds the label: CSV, with `,`, `;` or tab between values, or Parquet; or a
    file in the svmlight (libsvm) format"""
    clients: Count | dict[str, list[str] | OwnTable]
    """a number: the columns are split evenly, in order, over `client_0`, `client_1`, ... Or a
    mapping from names to a list of columns of `table`, or to `{table: other.csv}` (optionally with
    `columns: [...]`), joined on `id`"""
    ignore: list[str] = Field(default_factory=list)
    """columns that are no features"""
    positive: Class | None = None
    """the positive one of two classes; the second in sorted order unless given. Write `'yes'` and
    `'no'` in quotes"""
    standardise: bool = False
    """`true`: every column gets zero mean and unit variance, over the training samples; sparse
    columns are divided by their deviations, but keep their means and zeros. `run.coefficients` and
    `run.intercept` are those of the columns as given; `run.scaled_coefficients`, `run.parameters`
    and `parameters.npz` those of the scaled columns"""
    test_samples: Count | None = None
    """so many samples are held out as the test set"""
    holdout: Fraction | None = None
    """this fraction of the samples, drawn from the seed, is held out as the test set
    ([metrics.md](metrics.md)); instead of `test_samples`"""


class TableData(FileData):
    """Features and labels from CSV or Parquet."""

    label: str
    """the label column of `table`"""
    id: str | None = None
    """the column that tells who is who; needed to join tables, never a feature"""
    weight: str | None = None
    """the column of `table` with the weights of the samples, numbers of 0 or more by which their
    losses count; never a feature. Not for split networks; in federations `labels.weights`
    ([selection.md](selection.md#weights))"""
    prepare: Prepare | None = None
    """`auto`, or a mapping: how each client turns texts, dates and missing values into numbers,
    fitted on the training samples and kept with the run ([prepare.md](prepare.md)). `trees` keeps
    missing values and categories, for trees, and is their default. Without it, columns must hold
    numbers, with none missing"""


class SparseData(FileData):
    """Features and labels from a file in the svmlight (libsvm) format."""

    features: Count | None = None
    """the number of columns, where the file does not use the last ones"""

    @model_validator(mode="before")
    @classmethod
    def _labels_are_inside(cls, given: Any) -> Any:
        if not isinstance(given, dict):
            return given
        if extra := [key for key in ("label", "id", "weight") if given.get(key)]:
            raise ValueError(
                f"the labels are in an svmlight file, with nothing else: leave out "
                f"{' and '.join(extra)}"
            )
        if given.get("prepare"):
            raise ValueError("an svmlight file holds numbers only: leave out prepare")
        clients = given.get("clients")
        if isinstance(clients, dict) and any(isinstance(share, dict) for share in clients.values()):
            raise ValueError(
                "an svmlight file cannot be joined with other tables: give lists of columns as "
                "clients"
            )
        return {key: value for key, value in given.items() if key not in OF_TABLES}


class SyntheticData(Section):
    """Data made from the seed."""

    synthetic: str
    """the kind: `ridge`, `logistic` or `multinomial`"""
    samples: Count
    """the number of samples"""
    features: Count
    """the number of columns, of all clients together"""
    clients: Count
    """the number of clients; columns are split evenly, in order"""
    noise: Number = 0.1
    """the deviation of the noise in the labels"""
    classes: Whole = 3
    """the number of classes, of `multinomial`"""
    standardise: bool = False
    """as for tables"""
    test_samples: Count | None = None
    """so many more samples of the same kind, for the test"""
    holdout: Fraction | None = None
    """this fraction of `samples` is held out instead"""
    seed: Seed | None = None
    """draws the data; the config's own unless given"""


class ForecastSection(Section):
    """What is predicted of a series: see mtcd.Forecast."""

    target: str = Forecast.target
    """the station"""
    hours: Count = Forecast.hours
    """how far ahead"""
    year: Count = Forecast.year
    """the test year starts in March of this year"""


class DatasetData(Section):
    """A public data set, or the first of several that is at hand: see mtcd.load_dataset."""

    dataset: Annotated[list[str], BeforeValidator(_names)]
    """its name: `gisette`, `gisette-like` or `basehock`, which are tables, `cifar10` or
    `modelnet10`, which are pictures for split networks, with a test set, or `beijing-air`, which is
    a series, with a test year. Or a list of names: the first that is at hand is used, and written
    into the run folder's config ([datasets.md](datasets.md))"""
    clients: Count
    """columns are split evenly, in order. `cifar10`: 4 (quadrants), 2 (halves) or 1. `modelnet10`:
    a number that divides that of the views. `beijing-air`: 12 are all stations, fewer the target
    and those nearest to it"""
    samples: Count | None = None
    """a random part of this size (all unless given)"""
    features: Count | None = None
    """a random part of the columns (all unless given); of tables only"""
    forecast: ForecastSection | None = None
    """of `beijing-air`: what is predicted"""
    standardise: bool = False
    """as for tables; not for pictures, which are normalised as they are read"""
    test_samples: Count | None = None
    """of pictures and series: a random part of the test set (all of it unless given); of tables: so
    many samples are held out"""
    holdout: Fraction | None = None
    """of tables: this fraction of the samples is held out"""
    seed: Seed = 0
    """draws the part, and makes `gisette-like`. Not the config's seed: a data set is the same in
    every run"""


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
