"""The section ``data`` of a config: tables, svmlight files, synthetic data, and what features
add."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

from pydantic import AfterValidator, BeforeValidator, Field, SerializeAsAny, model_validator

from mtcd.config.section import (
    Alternatives,
    Count,
    Fraction,
    Number,
    Section,
    Seed,
    Whole,
    registered,
)
from mtcd.core import features
from mtcd.core.errors import MtcdError
from mtcd.data.prepare import read_recipe
from mtcd.data.svmlight import is_svmlight, read_svmlight
from mtcd.data.synthetic import synthetic
from mtcd.data.tables import TableShare, read_tables

if TYPE_CHECKING:
    from mtcd.config.schema import Config
    from mtcd.data.dataset import VerticalDataset
    from mtcd.data.vertical import VerticalData


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


class DataSection(Alternatives):
    """The samples, and who holds which columns.

    A feature names further kinds of data in its ``feature.py``, under ``config_sections`` and
    ``data``, by the key that tells them.

    Examples
    --------
    >>> made = {"synthetic": "ridge", "samples": 20, "features": 6, "clients": 3}
    >>> type(DataSection.model_validate(made)).__name__
    'SyntheticData'
    """

    if TYPE_CHECKING:
        # declared by each class, at its place: fields of this one would be the first of all tables
        clients: Any
        standardise: bool
        test_samples: int | None
        holdout: float | None

    @classmethod
    def chosen(cls, given: Mapping[str, Any]) -> type[Section]:
        if "synthetic" in given:
            return SyntheticData

        section = registered("data", given)
        if section is not None:
            return section

        if is_svmlight(Path(str(given.get("table", "")))):
            return SparseData
        return TableData

    @classmethod
    def signs(cls) -> list[str]:
        """The keys that tell what kind of data it is; data without one are a table."""
        return ["synthetic", *features.config_sections("data")]

    @property
    def positive_class(self) -> str | int | float | None:
        """The positive one of two classes, where the config names it."""
        return None

    @property
    def is_scaled(self) -> bool:
        """Whether samples are scaled when they are read, and must not be scaled again."""
        return False

    def settled(self) -> DataSection:
        """The section that names what is used on this computer, so that it repeats the run
        elsewhere."""
        return self

    def read(self, config: Config) -> VerticalData | VerticalDataset:
        """The samples; test samples that are drawn from them are still among them.

        Parameters
        ----------
        config
            The whole config: its seed, and what its model can be trained on.
        """
        raise NotImplementedError


AnyDataSection = SerializeAsAny[DataSection]

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


class FileData(DataSection):
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

    @property
    def positive_class(self) -> str | int | float | None:
        return self.positive


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

    def read(self, config: Config) -> VerticalData:
        clients = _with_tables(self.clients)
        prepare = self.prepare
        if prepare is None:
            names = client_names(self.clients)
            prepare = config.model.recipes(names)

        return read_tables(
            self.table, self.label, clients, self.id, self.ignore, prepare, self.weight
        )


def client_names(clients: int | Mapping[str, Any]) -> list[str]:
    """The names of the clients of a table.

    Parameters
    ----------
    clients
        Their number, or what each of them holds, by name.
    """
    if isinstance(clients, int):
        return [f"client_{k}" for k in range(clients)]
    return list(clients)


def _with_tables(clients: int | dict[str, list[str] | OwnTable]) -> Any:
    """What each client holds, in the form that ``read_tables`` takes."""
    if isinstance(clients, int):
        return clients

    shares: dict[str, Any] = {}
    for name, share in clients.items():
        if isinstance(share, OwnTable):
            shares[name] = TableShare(share.table, share.columns)
        else:
            shares[name] = share

    return shares


class SparseData(FileData):
    """Features and labels from a file in the svmlight (libsvm) format."""

    features: Count | None = None
    """the number of columns, where the file does not use the last ones"""

    @model_validator(mode="before")
    @classmethod
    def _labels_are_inside(cls, given: Any) -> Any:
        if not isinstance(given, dict):
            return given
        extra = [key for key in ("label", "id", "weight") if given.get(key)]
        if extra:
            raise ValueError(
                "the labels are in an svmlight file, with nothing else: leave out "
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

    def read(self, config: Config) -> VerticalData:
        return read_svmlight(self.table, cast(Any, self.clients), self.features, self.ignore)


class SyntheticData(DataSection):
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

    def read(self, config: Config) -> VerticalData:
        # test samples are made with the others, so that they follow the same model
        samples = self.samples + (self.test_samples or 0)
        seed = self.seed
        if seed is None:
            seed = config.seed
        return synthetic(
            self.synthetic,
            samples,
            self.features,
            self.clients,
            noise=self.noise,
            classes=self.classes,
            seed=seed,
        )
