"""CSV files with a header, as spreadsheets save them, for networks and links."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TextIO

from mtcd.core.errors import NetworkError, listing, system_reason

Cells = dict[str, str]
"""The texts of a row by column."""


def csv_rows(path: Path, columns: Sequence[str], what: str) -> Iterator[tuple[str, Cells]]:
    """For each line: its location, for errors, and its cells in these columns, none of them
    empty."""
    try:
        # utf-8-sig: spreadsheets put a byte order mark before the header
        with Path(path).open(newline="", encoding="utf-8-sig") as file:
            yield from _rows(file, path, columns)
    except OSError as error:
        raise NetworkError(f"cannot read the {what} {path}: {system_reason(error)}") from error
    except (UnicodeDecodeError, csv.Error) as error:
        raise NetworkError(
            f"{path} is not a CSV file in UTF-8 ({error}): save it as one"
        ) from error


def _rows(file: TextIO, path: Path, columns: Sequence[str]) -> Iterator[tuple[str, Cells]]:
    # Spreadsheets write semicolons where the comma is the decimal sign.
    first = file.readline()
    file.seek(0)
    # By the first line alone: cells further down may hold any of these characters.
    reader = csv.reader(file, delimiter=max(",;\t", key=first.count))
    header = [cell.strip().lower() for cell in next(reader, [])]
    for column in columns:
        if column not in header:
            raise NetworkError(
                f"{path} has no column '{column}': its first line must be a header with the "
                f"columns {','.join(columns)}; it has: {listing(header) or 'nothing'}"
            )

    places = {column: header.index(column) for column in columns}
    for row in reader:
        if not "".join(row).strip():  # a blank line
            continue

        where = f"{path}, line {reader.line_num}"
        cells = {}
        for column, place in places.items():
            cell = row[place].strip() if place < len(row) else ""  # a row may end early
            if not cell:
                raise NetworkError(
                    f"{where}: the cell '{column}' is empty; fill it in or remove the row"
                )
            cells[column] = cell
        yield where, cells
