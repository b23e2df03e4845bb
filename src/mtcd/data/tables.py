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
from mtcd.core.errors import DataError, check_known, listing
from mtcd.data.prepare import RawColumns
from mtcd.data.shares import check_owned_once, even_shares
from mtcd.data.table_files import Table, check_named, read_table
from mtcd.data.table_values import check_features, feature, labels_of
from mtcd.data.vertical import VerticalData, prepared, told

SHOWN_IDS = 5  # that did not match, in a note


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
    codes_but = None
    if prepare is not None:
        codes_but = (label, weight)

    main = read_table(Path(table), id, codes_but)
    _check_roles(main, label, weight, id)

    shares, notes = _shares(main, label, clients, id, ignore, weight, codes_but)

    others = {share.table.path: share.table for share in shares if share.table is not main}
    rows, unmatched = _matching_rows(main, list(others.values()))
    own_rows = rows[main.path]

    # from here on columns are taken out of the tables as they are used, so that no table is in
    # memory twice: the places of columns come first
    positions = _positions(main, shares)
    weights = None
    if weight is not None:
        weights = feature(main.path, main.columns[weight], None)[own_rows]

    labels, mixed = labels_of(main.path, main.columns.pop(label))
    labels = labels[own_rows]

    clients_of = tuple(share.client for share in shares)
    tables = tuple(share.table.path for share in shares)
    notes = [*notes, *mixed, *unmatched]
    if prepare is not None:
        raw = RawColumns.of(clients_of, _frames(shares, rows), positions, prepare)
        made = prepared(raw, labels, notes, weights=weights, tables=tables)
        return told(replace(made, label_table=main.path))

    columns = tuple(tuple(share.columns) for share in shares)
    matrix = _matrix(shares, rows, len(own_rows))
    ends = list(itertools.accumulate(map(len, columns)))
    return VerticalData(
        clients=clients_of,
        columns=columns,
        blocks=tuple(matrix[:, a:b] for a, b in itertools.pairwise([0, *ends])),
        labels=labels,
        weights=weights,
        notes=tuple(notes),
        positions=positions,
        tables=tables,
        label_table=main.path,
    )


def _check_roles(main: Table, label: str, weight: str | None, key: str | None) -> None:
    """Label and weight are columns of the main table, and no others have their names."""
    if weight is not None and weight in (label, key):
        raise DataError(
            f"Column {weight!r} cannot be the weight and the label or the id: name different "
            "columns."
        )
    check_named(main.path, main.columns, label=label, weight=weight)


def _positions(main: Table, shares: Sequence[_Share]) -> tuple[tuple[int, ...], ...]:
    """Where each client's columns stand when the tables are laid side by side, the main one
    first."""
    tables = {main.path: main} | {share.table.path: share.table for share in shares}
    held: dict[Path, set[str]] = {path: set() for path in tables}
    for share in shares:
        held[share.table.path].update(share.columns)

    place: dict[tuple[Path, str], int] = {}
    for path, table in tables.items():
        for column in table.columns:
            if column in held[path]:
                place[path, column] = len(place)

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

    # columns '0', '1', ... of the joined table: the rows of each table
    notes: list[str] = []
    joined = main.ids.rename({"row": "0"})
    for number, other in enumerate(others, start=1):
        # only ids that all tables have are left
        joined = joined.join(other.ids.rename({"row": str(number)}), on="id")
        notes += _unmatched(main, other)
        notes += _unmatched(other, main)
    tables = (main, *others)
    if joined.height == 0:
        raise DataError(f"No id is in all of {listing([t.path for t in tables])}: nothing to join.")

    joined = joined.sort("0")  # a join keeps no order
    rows = {table.path: joined[str(number)].to_numpy() for number, table in enumerate(tables)}
    return rows, notes


def _unmatched(one: Table, two: Table) -> list[str]:
    """A note on the ids of a table that another has not; an error if these are all."""
    lost = one.ids.join(two.ids, on="id", how="anti").sort("row")["id"]
    if not len(lost):
        return []

    first = listing([repr(i) for i in lost[:SHOWN_IDS]])
    if len(lost) == one.ids.height:
        theirs = listing([repr(i) for i in two.ids["id"][:SHOWN_IDS]])
        raise DataError(
            f"No id of {one.path} is in {two.path}: compare {first} with {theirs}. The id must "
            "mean the same in both."
        )
    if len(lost) > SHOWN_IDS:
        first += ", ..."
    return [
        f"{len(lost)} of {one.ids.height} ids of {one.path} are not in {two.path} and are left "
        f"out: {first}"
    ]


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
    # with the reason, for the error of a client that lists one of them
    barred = {label: "the label", **dict.fromkeys(ignore, "to be ignored")}
    if weight is not None:
        barred[weight] = "the weight"

    def free(table: Table) -> list[str]:
        return [column for column in table.columns if column not in barred]

    if not isinstance(clients, Mapping):
        clients = even_shares(free(main), clients)
    # by the real path: the same file under two names is one table
    tables = {main.path.resolve(): main}
    shares = []
    notes = []

    for client, share in clients.items():
        if not isinstance(share, TableShare):
            share = TableShare(main.path, share)

        table = _own_table(client, share, tables, key, codes_but)
        if share.columns is not None:
            columns = listed_columns(client, table, share.columns, barred, key)
        else:
            columns = free(table)
            if table is not main and label in table.columns:
                # it would give the answer away, if it is the label, or be missed, if it is not
                notes.append(
                    f"Column {label!r} of {table.path} is named like the label: {client!r} leaves "
                    "it out."
                )
        shares.append(_Share(client, table, columns))

    for table in tables.values():
        check_owned_once({s.client: s.columns for s in shares if s.table is table})
    _check_ignored(ignore, list(tables.values()), key)

    taken: set[str] = set()
    for held in shares:
        if held.table is main:
            taken.update(held.columns)
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
        # without an id, nothing says which row is which person
        if key is None:
            raise DataError(
                f"Client {client!r} has its own table {share.table}: name the id to join it on."
            )
        tables[place] = read_table(Path(share.table), key, codes_but)
    return tables[place]


def _check_ignored(ignore: Sequence[str], tables: list[Table], key: str | None) -> None:
    known = set(itertools.chain.from_iterable(table.columns for table in tables))
    if key is not None:
        known.add(key)
    for column in ignore:
        problem = f"Column {column!r} is to be ignored, but no table has it:"
        check_known(column, sorted(known), problem, DataError)


def listed_columns(
    client: str, table: Table, columns: Sequence[str], barred: Mapping[str, str], key: str | None
) -> list[str]:
    """The columns that a client lists, if its table has them and they are neither the id nor
    ``barred``."""
    roles = dict(barred)
    if key is not None:
        roles[key] = "the id"
    for column in columns:
        if column in roles:
            raise DataError(
                f"Client {client!r} lists column {column!r}, which is {roles[column]}: take it off "
                "the list."
            )
        problem = f"Client {client!r} lists column {column!r}, which {table.path} lacks:"
        check_known(column, table.columns, problem, DataError)
    return list(columns)


def _frames(shares: Sequence[_Share], rows: Mapping[Path, NDArray[np.intp]]) -> list[pl.DataFrame]:
    """The columns of each client as they are in the tables."""
    frames = []
    for share in shares:
        own = rows[share.table.path]
        columns = [share.table.columns.pop(column)[own] for column in share.columns]
        frames.append(pl.DataFrame(columns))
    return frames


def _matrix(shares: Sequence[_Share], rows: Mapping[Path, NDArray[np.intp]], samples: int) -> Array:
    """All features in one column-major matrix, client by client."""
    owned: list[tuple[Table, str]] = []
    for share in shares:
        owned += [(share.table, column) for column in share.columns]

    # all columns of a table before the first is read: one error names all that are no numbers
    for place in rows:
        check_features(place, [t.columns[c] for t, c in owned if t.path == place], "prepare: auto")

    # one matrix of which blocks are views: two columns of floats at most are in memory twice
    matrix = np.empty((samples, len(owned)), order="F")
    for j, (table, column) in enumerate(owned):
        matrix[:, j] = feature(table.path, table.columns.pop(column))[rows[table.path]]
    return matrix
