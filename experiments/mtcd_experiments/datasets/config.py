"""The section ``data`` of a config for public data sets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from pydantic import BeforeValidator

from mtcd.config.data_schema import DataSection
from mtcd.config.section import Count, Fraction, Section, Seed
from mtcd_experiments.datasets.catalogue import (
    PICTURES,
    SERIES,
    check_no_forecast,
    first_present,
    load_dataset,
    load_table,
)
from mtcd_experiments.datasets.entry import Forecast

if TYPE_CHECKING:
    from mtcd.config.schema import Config
    from mtcd.data.dataset import VerticalDataset
    from mtcd.data.vertical import VerticalData


def _names(value: Any) -> Any:
    """One name is a list of one."""
    names = [value] if isinstance(value, str) else value
    if not names or not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise ValueError("should be the name of a data set, or a list of names")
    return names


class ForecastSection(Section):
    """What is predicted of a series: see mtcd.Forecast."""

    target: str = Forecast.target
    """the station"""
    hours: Count = Forecast.hours
    """how far ahead"""
    year: Count = Forecast.year
    """the test year starts in March of this year"""


class DatasetData(DataSection):
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

    @property
    def is_scaled(self) -> bool:
        """Pictures are normalised as they are read, series are not."""
        return not {*self.dataset} & {*SERIES}

    def settled(self) -> DatasetData:
        """The one that is at hand, so that the config repeats the run when others are installed
        later."""
        return self.model_copy(update={"dataset": [first_present(self.dataset)]})

    def read(self, config: Config) -> VerticalData | VerticalDataset:
        name = self.dataset[0]
        forecast = None if self.forecast is None else Forecast(**self.forecast.model_dump())
        check_no_forecast(name, forecast)
        if not config.model.any_shape and name not in SERIES:
            return load_table(name, self.clients, self.samples, self.features, self.seed)

        # tables have no test set of their own: the config's is drawn from their samples
        has_test = name in PICTURES or name in SERIES
        return load_dataset(
            name,
            self.clients,
            self.samples,
            self.features,
            self.seed,
            self.test_samples if has_test else None,
            forecast,
        )
