"""CSV and Parquet files, read column by column, with the ids of their rows checked."""

from __future__ import annotations

import csv
import os
import re
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from mtcd.core.errors import DataError, check_known, listing
from mtcd.data.table_values import parsed

DELIMITERS = (",", ";", "\t")
FIRST_ROWS = 1000  # that the types of a CSV file are taken from, at first


@dataclass(frozen=True)
class Table:
    """A file in memory. Columns are taken out as they are used, so that nothing is held twice."""

    path: Path
    rows: int
    columns: dict[str, pl.Series]  # without the id
    ids: pl.DataFrame  # "id" (as text) and "row"; empty where there is no id


def read_table(path: Path, key: str | None, codes_but: Sequence[str | None] | None = None) -> Table:
    """The table in a file; ``key`` is its id column, if it has one.

    Numbers in a CSV file that may be something else (codes with leading zeros, thousands with
    points) are numbers, or, where ``codes_but`` is given, texts, in all but these columns.
    """
    if not os.path.exists(path):  # false, not an error, for a name that is too long
        raise no_such_file(path)
    if path.is_dir():
        raise DataError(f"{path} is a folder: name a CSV or Parquet file in it.")
    readers = {".csv": _read_csv, ".tsv": _read_csv, ".parquet": _read_parquet}
    read = readers.get(path.suffix.lower())
    if read is None:
        raise DataError(f"{path} ends in {path.suffix!r}: save the table as .csv or .parquet.")

    try:
        frame = read(path, key, codes_but)
    except (pl.exceptions.PolarsError, OSError, UnicodeDecodeError, csv.Error) as error:
        # the first line: polars goes on with advice about its own options
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise DataError(
            f"{path} cannot be read ({reason}): is it a whole file, in UTF-8 if CSV?"
        ) from None
    if 0 in frame.shape:
        raise DataError(f"{path} is empty: it needs a header and rows below it.")

    columns = {column.name: column for column in frame.get_columns()}
    # without an id the table can be used, but not joined
    if key is None:
        return Table(path, frame.height, columns, pl.DataFrame())
    check_known(key, columns, f"{path} has no id column {key!r}:", DataError)
    return Table(path, frame.height, columns, _ids(path, columns.pop(key)))


def _read_parquet(
    path: Path, key: str | None, codes_but: Sequence[str | None] | None
) -> pl.DataFrame:
    return pl.read_parquet(path, glob=False)


def _read_csv(path: Path, key: str | None, codes_but: Sequence[str | None] | None) -> pl.DataFrame:
    """Ids are read as text (007 is not 7); every other column is a number if all its values are."""
    separator, header = _header(path)
    overrides: dict[str | None, Any] = {}
    if key in header:
        overrides[key] = pl.String
    try:
        frame = _parsed_csv(path, separator, overrides)
    except pl.exceptions.ComputeError as error:
        # polars says that a row is too long, but not which
        raise pl.exceptions.ComputeError(
            _long_row(path, separator, len(header)) or str(error)
        ) from None

    if codes_but is not None:
        frame = _with_codes(path, separator, frame, [key, *codes_but])
    while frame.height and set(frame.row(-1)) == {None}:
        frame = frame.head(-1)  # blank lines at the end of the file

    columns = []
    for column in frame.get_columns():
        stays_text = codes_but is not None and column.name not in codes_but and _is_open(column)
        if column.name != key and not stays_text:
            column = _number_if_it_is_one(column)
        columns.append(column)
    return pl.DataFrame(columns)


def _with_codes(
    path: Path, separator: str, frame: pl.DataFrame, but: Sequence[str | None]
) -> pl.DataFrame:
    """The table with texts where polars dropped what they say: 01234 is not 1234, and 1.234 may be
    1234."""
    others = [column for column in frame.get_columns() if column.name not in but]
    open_ = [column.name for column in others if _may_be_open(column)]
    if not open_:
        return frame

    # these columns again, as they are in the file: the digits that were dropped are only there
    as_texts = dict.fromkeys(open_, pl.String)
    # only these columns, as texts: the others are read already
    shown = pl.read_csv(
        path, separator=separator, columns=open_, schema_overrides=as_texts, glob=False
    )
    return frame.with_columns([column for column in shown.get_columns() if _is_open(column)])


def _may_be_open(column: pl.Series) -> bool:
    """Whether the texts of a column of numbers may be codes, or have thousands separated by
    points."""
    if column.dtype.is_integer():
        return True
    if not column.dtype.is_float():
        return False

    # 1.234 with three digits behind one to three: nothing else can be thousands with a point
    known = column.drop_nulls()
    in_thousandths = ((known * 1000).round() - known * 1000).abs() < 1e-6
    of_three_digits = (known == 0) | known.abs().is_between(1, 999.9995)
    return bool((of_three_digits & in_thousandths).all())


def _is_open(column: pl.Series) -> bool:
    """Whether numbers in texts may be something else: codes (01234), telephone numbers
    (+49301234567), or thousands (1.234 and 999).
    """
    if column.dtype != pl.String:
        return False
    if column.str.contains(r"^\s*0\d+\s*$").any():
        return True

    known = column.drop_nulls().str.strip_chars()
    if len(known) and known.str.contains(r"^\+\d{8,15}$").all():
        return True

    # both kinds must occur: 1.234 alone is a number with three digits behind the point
    zero = known.str.contains(r"^[+-]?0$")
    bare = known.str.contains(r"^[+-]?[1-9]\d{0,2}$")
    grouped = known.str.contains(r"^[+-]?[1-9]\d{0,2}\.\d{3}$")
    return bool(bare.any() and grouped.any() and (bare | grouped | zero).all())


def _parsed_csv(path: Path, separator: str, overrides: dict[Any, Any]) -> pl.DataFrame:
    """The table with types from its first rows if all rows are of them, and from all rows
    otherwise.

    A text in the last row must not go unseen; but looking at all rows first takes four times as
    long.
    """

    def read(rows: int | None) -> pl.DataFrame:
        return pl.read_csv(
            path,
            separator=separator,
            infer_schema_length=rows,
            schema_overrides=overrides or None,
            glob=False,
        )

    try:
        # quick: types from the first rows hold for all of most files
        frame = read(FIRST_ROWS)
    except pl.exceptions.ComputeError:  # a value that is not of its column's type
        try:
            return read(None)
        except pl.exceptions.ComputeError:
            # digits of other scripts, which polars takes for numbers and cannot read
            return read(0)

    for column in frame.get_columns():
        text = column.dtype == pl.String and column.name not in overrides
        if text and column.head(FIRST_ROWS).is_null().all():  # only for want of a value
            return read(None)
    return frame


def _number_if_it_is_one(column: pl.Series) -> pl.Series:
    """Polars reads '+3', ' 2' and 'nan' as text."""
    if column.dtype != pl.String:
        return column
    numbers = parsed(column)
    if numbers.null_count() > column.null_count():  # some are no numbers
        return column
    return numbers


def _header(path: Path) -> tuple[str, list[str]]:
    """The delimiter, which is the one that gives the most columns, and the names of the columns."""
    headers = {}
    for delimiter in DELIMITERS:
        with path.open(encoding="utf-8-sig", newline="") as file:
            rows = filter(None, csv.reader(file, delimiter=delimiter))  # without blank lines
            headers[delimiter] = next(rows, [])

    # in a file with ; between values, a , is a decimal mark: the most columns win
    separator = max(DELIMITERS, key=lambda d: len(headers[d]))

    header = headers[separator]
    if not header:
        raise DataError(f"{path} is empty: it needs a header and rows below it.")

    name, count = Counter(header).most_common(1)[0]
    # polars would rename one of them in silence
    if count > 1:
        raise DataError(f"{path} has {count} columns named {name!r}: rename or remove all but one.")
    if "" in header:
        place = header.index("") + 1
        raise DataError(
            f"Column {place} of {path} has no name: name it, or write the table without it."
        )
    return separator, header


def _long_row(path: Path, separator: str, width: int) -> str:
    """What polars does not say when it refuses rows with too many values: which row."""
    with path.open(encoding="utf-8-sig", newline="") as file:
        records = csv.reader(file, delimiter=separator)
        next(filter(None, records), None)  # the header
        for number, row in enumerate(records, start=1):
            if len(row) > width:
                return f"row {number} has {len(row)} values, but the header has {width}"
    return ""


def _ids(path: Path, ids: pl.Series) -> pl.DataFrame:
    """The ids as text, so that tables agree whatever the types they keep them in."""
    name = ids.name
    if ids.dtype.is_float():
        # 7.0 is the id 7 of other tables, in a column that became floats for want of a value
        ids = ids.fill_nan(None)
        whole = ids.cast(pl.Int64, strict=False)
        if (whole.cast(pl.Float64) == ids.cast(pl.Float64)).all():
            ids = whole

    if ids.dtype.is_nested() or ids.dtype in (pl.Binary, pl.Object):
        raise DataError(f"The id column {name!r} of {path} holds {ids.dtype}: use numbers or text.")

    # 7 and '7' are the same person, whatever each table makes of them
    text = ids.cast(pl.String)
    missing = (text.is_null() | (text == "")).arg_true()
    if len(missing):
        raise DataError(
            f"Row {missing[0] + 1} of {path} has no id (column {name!r}): fill it in or remove it."
        )

    # joined, one person would become several samples
    repeated = text.is_duplicated().arg_true()
    if len(repeated):
        rows = [int(row) + 1 for row in (text == text[repeated[0]]).arg_true()]
        raise DataError(
            f"Id {text[repeated[0]]!r} (column {name!r} of {path}) is in rows {listing(rows)}: "
            f"keep one row per id."
        )
    return pl.DataFrame({"id": text, "row": np.arange(len(text))})


# 's3:', 'https:'; one letter alone is a drive of Windows
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:")


def no_such_file(path: Path) -> DataError:
    """The error for a file that does not exist: what was looked for, where, and what can be
    read."""
    address = _address(path)
    if address is None:
        return DataError(
            f"There is no file {path}: check the path (it was looked for from {Path.cwd()})."
        )

    # browsers show paths like this, and people copy them
    if address.startswith("file:"):
        return DataError(f"{address} is an address: name the file by its path, without 'file://'.")

    return DataError(
        f"{address} is an address, and data is read from files of this machine: .csv, .tsv, "
        ".parquet, or svmlight. Copy it to this machine and name the copy; or read it in Python "
        "(polars.read_parquet, pandas.read_csv) and pass the frame to mtcd.split."
    )


def _address(path: Path) -> str | None:
    """The address that was made into this path, by which '//' became '/'; None if it was a path.

    A config puts its own folder in front, so the scheme may stand at any place.
    """
    for i, part in enumerate(path.parts):
        if _SCHEME.fullmatch(part):
            slashes = "//"
            if part == "file:":  # of a file of this machine, the host is left out
                slashes = "///"
            return part + slashes + "/".join(path.parts[i + 1 :])
    return None


def check_named(path: Path, columns: Collection[str], **named: str | None) -> None:
    """Refuse a column of labels or weights that a file does not have.

    Parameters
    ----------
    path
        The file.
    columns
        Those that it has.
    named
        The column by its role, as ``label``; None for a role that no column has.
    """
    for role, name in named.items():
        if name is not None:
            check_known(name, columns, f"{path} has no {role} column {name!r}:", DataError)
