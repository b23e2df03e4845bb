"""Vertical data out of CSV and Parquet files: one table for all clients, or tables joined on an
id."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from mtcd.core.arrays import Array
from mtcd.core.errors import DataError, did_you_mean, listing
from mtcd.data.prepare import RawColumns
from mtcd.data.shares import check_owned_once, even_shares
from mtcd.data.table_files import Table, read_table
from mtcd.data.table_values import check_features, feature, labels_of
from mtcd.data.vertical import VerticalData, prepared, told


@dataclass(frozen=True)
class TableShare:
    r"""A client's own table, for :func:`read_tables`.

    Parameters
    ----------
    table : Path
        The file, CSV or Parquet.
    columns : sequence of str, optional
        The columns that the client holds; all but the id and the label unless given.

    Examples
    --------
    >>> import mtcd, pathlib, tempfile
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> _ = (folder / "clinic.csv").write_text("id,age,ill\na,50,0\nb,60,1\n")
    >>> _ = (folder / "lab.csv").write_text("id,crp\nb,7\na,3\n")
    >>> lab = mtcd.TableShare(folder / "lab.csv", ["crp"])
    >>> clients = {"clinic": ["age"], "lab": lab}
    >>> mtcd.read_tables(folder / "clinic.csv", "ill", clients, id="id").blocks[1].tolist()
    [[3.0], [7.0]]
    """

    table: Path
    columns: Sequence[str] | None = None


@dataclass(frozen=True)
class _Share:
    """The columns of one table that one client holds."""

    client: str
    table: Table
    columns: list[str]


def read_tables(
    table: Path,
    label: str,
    clients: int | Mapping[str, Sequence[str] | TableShare],
    id: str | None = None,  # noqa: A002  (the word of the config)
    ignore: Sequence[str] = (),
    prepare: Any = None,
    weight: str | None = None,
) -> VerticalData:
    """Read samples from CSV or Parquet files, and split their columns over clients.

    Samples keep the order of ``table``; ids that are not in every table are left out, and reported
    in the notes.

    Parameters
    ----------
    table : Path
        The file that holds the label.
    label : str
        The column to predict.
    clients : int or mapping
        Their number (columns are split evenly, in order), or a mapping from names to columns of
        ``table`` or to a :class:`TableShare`.
    id : str, optional
        The column on which tables are joined.
    ignore : sequence of str
        Columns that are no features.
    prepare : 'auto' or mapping, optional
        As in :func:`mtcd.split`.
    weight : str, optional
        The column of ``table`` with the weights of the samples.

    Returns
    -------
    VerticalData
        The samples, split over the clients.

    Raises
    ------
    MtcdError
        If a file or a column cannot be read, or no id is in all tables.

    Examples
    --------
    >>> import mtcd, pathlib, tempfile
    >>> table = pathlib.Path(tempfile.mkdtemp()) / "people.csv"
    >>> _ = table.write_text("age,bmi,ill\\n50,20,0\\n60,30,1\\n")
    >>> mtcd.read_tables(table, "ill", clients={"clinic": ["age"], "lab": ["bmi"]}).columns
    (('age',), ('bmi',))
    """
    if label == id:
        raise DataError(f"Column {label!r} cannot be both the label and the id: name two columns.")
    codes_but = None if prepare is None else (label, weight)
    main = read_table(Path(table), id, codes_but)
    if weight in (label, id) and weight is not None:
        raise DataError(
            f"Column {weight!r} cannot be the weight and the label or the id: name different "
            f"columns."
        )
    for role, name in (("label", label), ("weight", weight)):
        if name is not None and name not in main.columns:
            raise DataError(
                f"{main.path} has no {role} column {name!r}: {did_you_mean(name, main.columns)}"
            )
    weights = None if weight is None else feature(main.path, main.columns[weight], None)
    shares, notes = _shares(main, label, clients, id, ignore, weight, codes_but)
    others = {s.table.path: s.table for s in shares if s.table is not main}
    rows, unmatched = _matching_rows(main, list(others.values()))
    positions = _positions(main, shares)
    labels, mixed = labels_of(main.path, main.columns.pop(label))
    weights = None if weights is None else weights[rows[main.path]]
    tables = tuple(share.table.path for share in shares)
    if prepare is not None:
        raw = RawColumns.of([s.client for s in shares], _frames(shares, rows), positions, prepare)
        every = (*notes, *mixed, *unmatched)
        made = prepared(raw, labels[rows[main.path]], every, weights=weights, tables=tables)
        return told(replace(made, label_table=main.path))
    matrix = _matrix(shares, rows, len(rows[main.path]))
    bounds = np.cumsum([0, *(len(s.columns) for s in shares)])
    return VerticalData(
        clients=tuple(s.client for s in shares),
        columns=tuple(tuple(s.columns) for s in shares),
        blocks=tuple(matrix[:, a:b] for a, b in itertools.pairwise(bounds)),
        labels=labels[rows[main.path]],
        weights=weights,
        notes=(*notes, *mixed, *unmatched),
        positions=positions,
        tables=tables,
        label_table=main.path,
    )


def _positions(main: Table, shares: Sequence[_Share]) -> tuple[tuple[int, ...], ...]:
    """Where each client's columns stand when the tables are laid side by side, the main one
    first."""
    owned = {(share.table.path, column) for share in shares for column in share.columns}
    tables = {main.path: main} | {share.table.path: share.table for share in shares}
    side_by_side = [(path, column) for path, table in tables.items() for column in table.columns]
    place = {cell: i for i, cell in enumerate(cell for cell in side_by_side if cell in owned)}
    return tuple(
        tuple(place[share.table.path, column] for column in share.columns) for share in shares
    )


def _matching_rows(
    main: Table, others: list[Table]
) -> tuple[dict[Path, NDArray[np.intp]], list[str]]:
    """For each table the rows of the samples that all tables have, in the order of the main
    table."""
    if not others:
        return {main.path: np.arange(main.rows)}, []
    notes: list[str] = []
    joined = main.ids.rename({"row": "0"})
    for number, other in enumerate(others, start=1):
        joined = joined.join(other.ids.rename({"row": str(number)}), on="id")
        for one, two in ((main, other), (other, main)):
            lost = one.ids.join(two.ids, on="id", how="anti").sort("row")["id"]
            first = listing([repr(i) for i in lost[:5]])
            if len(lost) == one.ids.height:
                raise DataError(
                    f"No id of {one.path} is in {two.path}: compare {first} with "
                    f"{listing([repr(i) for i in two.ids['id'][:5]])}. The id must mean the same "
                    f"in both."
                )
            if len(lost):
                more = ", ..." if len(lost) > 5 else ""
                notes.append(
                    f"{len(lost)} of {one.ids.height} ids of {one.path} are not in {two.path} "
                    f"and are left out: {first}{more}"
                )
    if joined.height == 0:
        raise DataError(
            f"No id is in all of {listing([t.path for t in (main, *others)])}: nothing to join."
        )
    joined = joined.sort("0")
    rows = {t.path: joined[str(n)].to_numpy() for n, t in enumerate((main, *others))}
    return rows, notes


def _shares(
    main: Table,
    label: str,
    clients: int | Mapping[str, Sequence[str] | TableShare],
    key: str | None,
    ignore: Sequence[str],
    weight: str | None,
    codes_but: Sequence[str | None] | None,
) -> tuple[list[_Share], list[str]]:
    """The assignment of the columns of tables to clients, and notes for the user."""
    barred = {label: "the label", **dict.fromkeys(ignore, "to be ignored")}
    if weight is not None:
        barred[weight] = "the weight"

    def free(table: Table) -> list[str]:
        return [column for column in table.columns if column not in barred]

    if not isinstance(clients, Mapping):
        clients = even_shares(free(main), clients)
    tables = {main.path.resolve(): main}
    shares = []
    notes = []
    for client, share in clients.items():
        if not isinstance(share, TableShare):
            share = TableShare(main.path, share)
        table = _own_table(client, share, tables, key, codes_but)
        if share.columns is None:
            columns = free(table)
        else:
            columns = listed_columns(client, table, share.columns, barred, key)
        shares.append(_Share(client, table, columns))
        if share.columns is None and table is not main and label in table.columns:
            notes.append(
                f"Column {label!r} of {table.path} is named like the label: {client!r} leaves it "
                f"out."
            )
    for table in tables.values():
        check_owned_once({s.client: s.columns for s in shares if s.table is table})
    _check_ignored(ignore, list(tables.values()), key)
    taken = {column for s in shares if s.table is main for column in s.columns}
    unused = [column for column in free(main) if column not in taken]
    if unused:
        notes.append(f"No client takes these columns of {main.path}: {listing(unused)}.")
    return shares, notes


def _own_table(
    client: str,
    share: TableShare,
    tables: dict[Path, Table],
    key: str | None,
    codes_but: Sequence[str | None] | None,
) -> Table:
    """The table of this share, read on first use: several clients may hold columns of one table."""
    place = Path(share.table).resolve()
    if place not in tables:
        if key is None:
            raise DataError(
                f"Client {client!r} has its own table {share.table}: name the id to join it on."
            )
        tables[place] = read_table(Path(share.table), key, codes_but)
    return tables[place]


def _check_ignored(ignore: Sequence[str], tables: list[Table], key: str | None) -> None:
    known = {column for table in tables for column in table.columns} | {key}
    for column in ignore:
        if column not in known:
            names = sorted(name for name in known if name is not None)
            raise DataError(
                f"Column {column!r} is to be ignored, but no table has it: "
                f"{did_you_mean(column, names)}"
            )


def listed_columns(
    client: str, table: Table, columns: Sequence[str], barred: Mapping[str, str], key: str | None
) -> list[str]:
    """The columns that a client lists, if its table has them and they are neither the id nor
    ``barred``."""
    for column in columns:
        role = "the id" if column == key else barred.get(column)
        if role is not None:
            raise DataError(
                f"Client {client!r} lists column {column!r}, which is {role}: take it off the list."
            )
        if column not in table.columns:
            hint = did_you_mean(column, table.columns)
            raise DataError(
                f"Client {client!r} lists column {column!r}, which {table.path} lacks: {hint}"
            )
    return list(columns)


def _frames(shares: Sequence[_Share], rows: Mapping[Path, NDArray[np.intp]]) -> list[pl.DataFrame]:
    """The columns of each client as they are in the tables."""
    return [
        pl.DataFrame(
            [share.table.columns.pop(column)[rows[share.table.path]] for column in share.columns]
        )
        for share in shares
    ]


def _matrix(shares: Sequence[_Share], rows: Mapping[Path, NDArray[np.intp]], samples: int) -> Array:
    """All features in one column-major matrix, client by client."""
    matrix = np.empty((samples, sum(len(s.columns) for s in shares)), order="F")
    owned = [(s.table, column) for s in shares for column in s.columns]
    for place in rows:
        check_features(place, [t.columns[c] for t, c in owned if t.path == place], "prepare: auto")
    for j, (table, column) in enumerate(owned):
        matrix[:, j] = feature(table.path, table.columns.pop(column))[rows[table.path]]
    return matrix
