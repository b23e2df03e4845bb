"""Data whose blocks are read or generated where they are used: in the process that hosts a client.

This process has the labels and the names of clients and columns only.
"""

from __future__ import annotations

import itertools
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np
import polars as pl
import scipy  # its parts are loaded when they are used
from numpy.typing import ArrayLike, NDArray

from mtcd.core.arrays import Array, is_sparse
from mtcd.core.errors import DataError, did_you_mean
from mtcd.core.mappings import positions
from mtcd.core.own_code import imported
from mtcd.data.checks import check_values
from mtcd.data.labels import as_labels
from mtcd.data.shares import even_shares
from mtcd.data.svmlight import read_matrix
from mtcd.data.table_files import check_named, no_such_file
from mtcd.data.vertical import Block, VerticalData


class BlockSource(Protocol):
    """Where the block of a client comes from. It is small, and is sent to the process that needs
    the block."""

    def read(self) -> Block:
        """The block: a row per sample, dense or a ``csr_array``."""


@dataclass(frozen=True)
class ParquetColumns:
    """Columns of a Parquet file; the others are not read."""

    path: Path
    columns: tuple[str, ...]

    def read(self) -> Block:
        try:
            frame = pl.read_parquet(self.path, columns=list(self.columns), glob=False)
        except (pl.exceptions.PolarsError, OSError) as error:
            raise DataError(
                f"{self.path} cannot be read here: {_first(error)}. Each node needs the file."
            ) from None
        try:
            # column by column, as clients compute
            return np.asfortranarray(frame.select(self.columns).to_numpy(), dtype=float)
        except (ValueError, TypeError) as error:
            raise DataError(
                f"{self.path}: the columns of a client must be numbers: {_first(error)}."
            ) from None


@dataclass(frozen=True)
class SvmlightShard:
    """A file in the svmlight format with the columns of one client; its labels are not used."""

    path: Path
    columns: int

    def read(self) -> Block:
        return read_matrix(self.path, self.columns)[0]


@dataclass(frozen=True)
class MadeBlock:
    """The result of a function 'module:name', called with the client's name, its number and the
    number of samples."""

    function: str
    client: str
    number: int
    samples: int
    folder: Path

    def read(self) -> Block:
        # imported where it runs: only the name travels to the process
        make = imported(self.function, "blocks", [self.folder])
        made = make(self.client, self.number, self.samples)
        if is_sparse(made):
            return scipy.sparse.csr_array(made, dtype=float)
        return np.asfortranarray(made, dtype=float)


@dataclass(frozen=True, eq=False)
class BlockSources:
    """N samples of K clients, whose blocks are read where they are used.

    Made by :func:`parquet_blocks`, :func:`svmlight_blocks` or :func:`made_blocks`. Trained with an
    engine that has processes of its own, such as :class:`mtcd.Ray`, the blocks never come to this
    process; without one, they are read here.

    Parameters
    ----------
    clients : tuple of str
        The names of the clients.
    columns : tuple of tuples of str
        The columns of each client.
    sources : tuple of BlockSource
        How each block is read; rows in the order of the labels.
    labels : array
        A label per row.
    positions : tuple of tuples of int
        Where each column stood originally.
    weights : array, optional
        A number of 0 or more per row, by which its loss counts.
    notes : tuple of str
        What the user should know.

    Examples
    --------
    >>> import mtcd
    >>> sources = mtcd.made_blocks("blocks:make", clients=2, columns=3, labels=[0, 1, 1])
    >>> sources.clients, sources.labels.tolist()
    (('client_0', 'client_1'), [0, 1, 1])
    """

    clients: tuple[str, ...]
    columns: tuple[tuple[str, ...], ...]
    sources: tuple[BlockSource, ...]
    labels: NDArray[np.generic]
    positions: tuple[tuple[int, ...], ...] = ()
    weights: Array | None = None
    notes: tuple[str, ...] = ()

    @property
    def samples(self) -> int:
        """N, the number of samples."""
        return len(self.labels)

    def block(self, k: int) -> Block:
        """The block of client k, read and checked here."""
        block = self.sources[k].read()
        client = self.clients[k]
        columns = self.columns[k]
        if block.ndim != 2 or block.shape != (self.samples, len(columns)):
            raise DataError(
                f"The block of {client!r} has the shape {block.shape}, but there are "
                f"{self.samples} labels and {len(columns)} columns."
            )
        # here, where the block is: nobody else ever sees it
        check_values(client, columns, block)
        return block

    def read(self) -> VerticalData:
        """The same data in this process."""
        return self._data([self.block(k) for k in range(len(self.clients))])

    def outline(self) -> VerticalData:
        """The same data with zeros in place of all blocks, which take no memory."""
        return self._data(
            [scipy.sparse.csr_array((self.samples, len(columns))) for columns in self.columns]
        )

    def _data(self, blocks: Sequence[Block]) -> VerticalData:
        return VerticalData(
            self.clients,
            self.columns,
            tuple(blocks),
            self.labels,
            notes=self.notes,
            positions=self.positions,
            weights=self.weights,
            tables=self._files(ParquetColumns, SvmlightShard),
            label_table=self._label_table,
        )

    def _files(self, *kinds: type[ParquetColumns | SvmlightShard]) -> tuple[Path, ...]:
        """The file of each client; none unless all sources are of these kinds."""
        files = [source.path for source in self.sources if isinstance(source, kinds)]
        if len(files) < len(self.sources):
            return ()
        return tuple(files)

    @property
    def _label_table(self) -> Path | None:
        """The Parquet file that all columns, and the label, are from; None for other sources."""
        files = set(self._files(ParquetColumns))
        if len(files) != 1:
            return None
        return files.pop()


def parquet_blocks(
    table: str | Path,
    label: str,
    clients: int | Mapping[str, Sequence[str]],
    ignore: Sequence[str] = (),
    weight: str | None = None,
) -> BlockSources:
    """Columns of a Parquet file, split over clients; only the label is read here.

    Parameters
    ----------
    table : str or Path
        The file.
    label : str
        The column to predict.
    clients : int or mapping
        As in :func:`mtcd.read_tables`.
    ignore : sequence of str
        Columns that are no features.
    weight : str, optional
        The column with the weights of the samples.

    Returns
    -------
    BlockSources
        Blocks that are read where they are used.

    Examples
    --------
    >>> import mtcd, pathlib, polars, tempfile
    >>> table = pathlib.Path(tempfile.mkdtemp()) / "people.parquet"
    >>> polars.DataFrame({"age": [50, 60], "bmi": [20, 30], "ill": [0, 1]}).write_parquet(table)
    >>> mtcd.parquet_blocks(table, "ill", {"clinic": ["age"], "lab": ["bmi"]}).columns
    (('age',), ('bmi',))
    """
    path = Path(table).resolve()
    if not os.path.exists(path):  # false, not an error, for a name that is too long
        raise no_such_file(Path(table))
    try:
        # names of columns are in the file's footer: no values are read for them
        names = list(pl.read_parquet_schema(path))
        check_named(path, names, label=label, weight=weight)
        wanted = [name for name in (label, weight) if name is not None]
        here = pl.read_parquet(path, columns=wanted, glob=False)
    except (pl.exceptions.PolarsError, OSError) as error:
        raise DataError(f"{path} cannot be read: {_first(error)}.") from None

    free = [name for name in names if name not in {label, weight, *ignore}]
    owned = _shared(free, clients)
    held = set(itertools.chain.from_iterable(owned.values()))
    place = positions(name for name in free if name in held)

    weights = None
    if weight is not None:
        weights = here[weight].to_numpy().astype(float)
    return BlockSources(
        tuple(owned),
        tuple(owned.values()),
        tuple(ParquetColumns(path, columns) for columns in owned.values()),
        as_labels(here[label].to_numpy()),
        tuple(tuple(place[name] for name in columns) for columns in owned.values()),
        weights,
    )


def svmlight_blocks(
    shards: Mapping[str, tuple[str | Path, int]], labels: ArrayLike
) -> BlockSources:
    r"""Blocks from a file in the svmlight format for each client.

    Parameters
    ----------
    shards : mapping from str to (path, columns)
        The file of each client, with its number of columns. Rows are in the order of the labels.
    labels : array
        A label per row.

    Returns
    -------
    BlockSources
        Blocks that are read where they are used.

    Examples
    --------
    >>> import mtcd, pathlib, tempfile
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> _ = (folder / "clinic.svm").write_text("0 1:50\n0 1:60\n")
    >>> _ = (folder / "lab.svm").write_text("0 2:1\n0 1:7\n")
    >>> files = {"clinic": (folder / "clinic.svm", 1), "lab": (folder / "lab.svm", 2)}
    >>> data = mtcd.svmlight_blocks(files, labels=[0, 1]).read()
    >>> data.blocks[1].toarray().tolist()
    [[0.0, 1.0], [7.0, 0.0]]
    """
    sources = []
    names = []
    for client, (path, width) in shards.items():
        sources.append(SvmlightShard(Path(path).resolve(), width))
        names.append(_numbered(client, width))
    return BlockSources(tuple(shards), tuple(names), tuple(sources), as_labels(labels))


def made_blocks(
    function: str,
    clients: int | Sequence[str],
    columns: int,
    labels: ArrayLike,
    folder: str | Path = ".",
) -> BlockSources:
    r"""Blocks that a function of the user makes, where they are used.

    Parameters
    ----------
    function : str
        'module:name' of a function of (client, number, samples).
    clients : int or sequence of str
        Their number, or their names.
    columns : int
        The columns of each block.
    labels : array
        A label per row.
    folder : str or Path, default '.'
        Where the module is.

    Returns
    -------
    BlockSources
        Blocks that are made where they are used.

    Examples
    --------
    >>> import mtcd, pathlib, tempfile
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> _ = (folder / "blocks.py").write_text(
    ...     "import numpy as np\n"
    ...     "def make(client, number, samples):\n"
    ...     "    return np.full((samples, 2), float(number))\n"
    ... )
    >>> sources = mtcd.made_blocks("blocks:make", 3, columns=2, labels=[0, 1], folder=folder)
    >>> [block.tolist() for block in sources.read().blocks]
    [[[0.0, 0.0], [0.0, 0.0]], [[1.0, 1.0], [1.0, 1.0]], [[2.0, 2.0], [2.0, 2.0]]]
    """
    if isinstance(clients, int):
        names = tuple(f"client_{k}" for k in range(clients))
    else:
        names = tuple(clients)
    known = as_labels(labels)
    place = Path(folder).resolve()
    sources = tuple(MadeBlock(function, name, k, len(known), place) for k, name in enumerate(names))
    held = tuple(_numbered(name, columns) for name in names)
    return BlockSources(names, held, sources, known)


def _numbered(client: str, width: int) -> tuple[str, ...]:
    """Names of columns that have none, which differ from those of other clients."""
    return tuple(f"{client}.x{j}" for j in range(width))


def _shared(
    free: Sequence[str], clients: int | Mapping[str, Sequence[str]]
) -> dict[str, tuple[str, ...]]:
    """The columns of each client."""
    if not isinstance(clients, Mapping):
        clients = even_shares(free, clients)

    known = set(free)  # of thousands of columns, a list would be searched for each of them
    taken: Counter[str] = Counter()
    for client, columns in clients.items():
        for name in columns:
            if name not in known:
                raise DataError(
                    f"Client {client!r} wants column {name!r}: {did_you_mean(name, free)}"
                )
        taken.update(columns)

    for name, count in taken.items():
        if count > 1:
            raise DataError(f"Column {name!r} is given to several clients: give it to one of them.")
    return {client: tuple(columns) for client, columns in clients.items()}


def _first(error: BaseException) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]
