"""Everyday formats of dates, moments, times of day and durations under ``prepare: auto``."""

from datetime import date, datetime, time, timedelta

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from auto_prepared import new, prepared
from mtcd.data.prepare.values import times

rng = np.random.default_rng(3)


DAYS = [date(2023, 1, 1) + timedelta(int(day)) for day in rng.integers(0, 700, 60)]


MOMENTS = [datetime(day.year, day.month, day.day, 8 + i % 12, i % 60) for i, day in enumerate(DAYS)]


DATES = {
    "ISO": lambda d: d.isoformat(),
    "ISO with slashes": lambda d: d.strftime("%Y/%m/%d"),
    "US": lambda d: d.strftime("%m/%d/%Y"),
    "US without zeros": lambda d: f"{d.month}/{d.day}/{d.year}",
    "US of two digits": lambda d: d.strftime("%m/%d/%y"),
    "British": lambda d: d.strftime("%d/%m/%Y"),
    "Dutch": lambda d: d.strftime("%d-%m-%Y"),
    "German": lambda d: d.strftime("%d.%m.%Y"),
    "German of two digits": lambda d: d.strftime("%d.%m.%y"),
    "month names": lambda d: d.strftime("%d %b %Y"),
    "month names with hyphens": lambda d: d.strftime("%d-%b-%y"),
    "long month names": lambda d: d.strftime("%B %d, %Y"),
    "weekday": lambda d: d.strftime("%A, %d %B %Y"),
    "compact": lambda d: d.strftime("%Y%m%d"),
    "compact, day first": lambda d: d.strftime("%d%m%Y"),
    "French": lambda d: f"{d.day} {FRENCH[d.month - 1]} {d.year}",
    "Spanish": lambda d: f"{d.day} de {SPANISH[d.month - 1]} de {d.year}",
    "Japanese": lambda d: f"{d.year}\u5e74{d.month}\u6708{d.day}\u65e5",
}


MONTHS = (
    "janvier février mars avril mai juin juillet août septembre octobre novembre décembre",
    "enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre",
)


FRENCH, SPANISH = (names.split() for names in MONTHS)


@pytest.mark.parametrize("form", DATES)
@pytest.mark.parametrize("spoilt", [None, "n/a", "soon"])
def test_dates_in_everyday_formats_are_dates(form: str, spoilt: str | None) -> None:
    texts = [DATES[form](day) for day in DAYS]
    if spoilt is not None:
        texts[4] = spoilt
    preparation, _, notes = prepared(texts, {"missing": "keep"})
    assert preparation.outputs == ("x.year", "x.month", "x.day", "x.weekday", "x.days")
    kept = [day for i, day in enumerate(DAYS) if spoilt is None or i != 4]
    expected = [[d.year, d.month, d.day, d.isoweekday(), (d - min(kept)).days] for d in kept]
    found = new(preparation, texts)
    np.testing.assert_array_equal(found[~np.isnan(found[:, 0])], expected)
    assert ("read as dates" in notes) == (form != "ISO")
    if spoilt is not None:
        assert f"such as {spoilt!r}, count as missing" in notes


TIMES = {
    "ISO": lambda m: m.isoformat(),
    "ISO in UTC": lambda m: m.isoformat() + "Z",
    "ISO with an offset": lambda m: (m + timedelta(hours=2)).isoformat() + "+02:00",
    "ISO, compact": lambda m: m.strftime("%Y%m%dT%H%M%S"),
    "US with halves of a day": lambda m: m.strftime("%m/%d/%Y %I:%M %p"),
    "German": lambda m: m.strftime("%d.%m.%Y %H:%M"),
    "mail": lambda m: m.strftime("%a, %d %b %Y %H:%M:%S GMT"),
    "named zone": lambda m: (m - timedelta(hours=5)).strftime("%Y-%m-%d %H:%M EST"),
    "zone of Java": lambda m: (m + timedelta(hours=1)).isoformat() + "+01:00[Europe/Berlin]",
    "browser": lambda m: m.strftime("%a %b %d %Y %H:%M:%S GMT+0000 (Coordinated Universal Time)"),
    "ctime": lambda m: m.ctime(),
    "log of a web server": lambda m: m.strftime("%d/%b/%Y:%H:%M:%S +0000"),
    "German with a word": lambda m: m.strftime("%d.%m.%Y, %H:%M Uhr"),
    "digits alone": lambda m: m.strftime("%Y%m%d%H%M%S"),
}


@pytest.mark.parametrize("form", TIMES)
def test_moments_in_everyday_formats_are_moments(form: str) -> None:
    preparation, _, _ = prepared([TIMES[form](moment) for moment in MOMENTS], {"missing": "keep"})
    found = new(preparation, [TIMES[form](moment) for moment in MOMENTS])
    columns = [preparation.outputs.index(f"x.{part}") for part in ("year", "month", "day", "hour")]
    assert found[:, columns].tolist() == [[m.year, m.month, m.day, m.hour] for m in MOMENTS]


@pytest.mark.parametrize("form", ["%H:%M", "%I:%M %p", "%H:%M:%S"])
def test_times_of_day_are_seconds(form: str) -> None:
    moments = [time(i % 24, 7 * i % 60) for i in range(48)]
    preparation, block, notes = prepared([m.strftime(form) for m in moments], {"missing": "keep"})
    assert preparation.outputs == ("x",)
    assert block[:, 0].tolist() == [m.hour * 3600 + m.minute * 60 for m in moments]
    assert "seconds of a time of day" in notes


DURATIONS = {
    "hours and minutes": lambda s: f"{s // 3600}h {s % 3600 // 60:02}m",
    "French": lambda s: f"{s // 3600}h{s % 3600 // 60:02}",
    "words": lambda s: f"{s // 3600} hours {s % 3600 // 60} min",
    "pandas": lambda s: str(pd.Timedelta(seconds=s)),
    "Python": lambda s: str(timedelta(seconds=s)),
}


@pytest.mark.parametrize("form", DURATIONS)
def test_durations_are_seconds(form: str) -> None:
    seconds = [60 * (7 + 13 * i) for i in range(100)]
    days = [0, 86_400] if form in ("pandas", "Python") else [0]
    seconds = [second % 86_400 + day for second in seconds for day in days]
    if form == "pandas":
        seconds = [second - 86_400 for second in seconds]
    _, block, notes = prepared([DURATIONS[form](second) for second in seconds], {"missing": "keep"})
    assert block[:, 0].tolist() == seconds
    assert "seconds of a time of day" in notes


STAMPS = [
    "%d.%m.%Y %H:%M:%S",
    "%m/%d/%Y %I:%M:%S %p",
    "%d %B %Y %H:%M",
    "%b %d, %Y %H:%M:%S.%f",
    "%y-%m-%d",
]


@given(
    st.sampled_from(STAMPS),
    st.lists(st.datetimes(datetime(1970, 1, 1), datetime(2068, 12, 31)), max_size=20),
)
def test_dates_are_read_as_they_were_written(form: str, values: list[datetime]) -> None:
    order = {"%m": "month-first", "%y": "year-first"}.get(form[:2], "day-first")
    texts = pl.Series([value.strftime(form) for value in values], dtype=pl.String)
    expected = [datetime.strptime(text, form) for text in texts.to_list()]
    assert times(texts, None, None, order).to_list() == expected  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "text",
    ["31.02.2024", "29.02.2023", "00.01.2024", "01.13.2024", "01.01.2024 24:00", "01.01.2024 10:60", "01.01-2024",
     "1.1.2024 13:00 "
     "PM", "01.01.2024 10:00 XYZ", "01.01.2024 10:00 +25:00", "0000-01-01", "2024-02-30", "14 Foo 2024"],
)  # fmt: skip
def test_days_and_times_that_do_not_exist_are_not_read(text: str) -> None:
    assert times(pl.Series([text, "05.06.2024"]), None, None, "day-first").to_list() == [
        None,
        datetime(2024, 6, 5),
    ]
