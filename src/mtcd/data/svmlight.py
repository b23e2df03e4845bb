"""Files in the svmlight (libsvm) format: a label and ``index:value`` pairs to a line, plain, .gz or
.bz2."""

from __future__ import annotations

import bz2
import gzip
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import IO, Any, cast

import numpy as np
import scipy  # its parts are loaded when they are used
from numpy.typing import NDArray

from mtcd.core.arrays import Array
from mtcd.core.checks import check_whole
from mtcd.core.errors import DataError
from mtcd.data.splitting import split
from mtcd.data.table_files import no_such_file
from mtcd.data.vertical import VerticalData

ENDINGS = (".svm", ".libsvm", ".svmlight")
MOST_COLUMNS = 10_000_000  # each has a name
_OPEN: dict[str, Callable[..., Any]] = {".gz": gzip.open, ".bz2": bz2.open}
_CHUNK = 1 << 24  # bytes that are parsed at once
_NUMBER = rb"[-+]?+(?:\d++\.?+\d*+|\.\d++)(?:[eE][-+]?+\d++)?+"
_LINE = rb"[ \t]*+(?:" + _NUMBER + rb"(?:[ \t]++\d++:" + _NUMBER + rb")*+)?+[ \t\r]*+\n"
_QUERY = re.compile(rb"^([ \t]*+" + _NUMBER + rb")[ \t]++qid:\d++(?=[ \t\r\n])", re.MULTILINE)
_LINES = re.compile(rb"(?:" + _LINE + rb")*+")


def is_svmlight(path: Path) -> bool:
    """Whether the name of the file ends as those of this format do.

    >>> is_svmlight(Path("news20.libsvm.bz2")), is_svmlight(Path("patients.csv"))
    (True, False)
    """
    name = path.name.lower()
    for packed in _OPEN:
        # .svm.gz is a file of the format, too
        name = name.removesuffix(packed)
    return name.endswith(ENDINGS)


def read_svmlight(
    path: str | Path,
    clients: int | Mapping[str, Sequence[str]],
    features: int | None = None,
    ignore: Sequence[str] = (),
) -> VerticalData:
    r"""Read a file in the svmlight format; blocks are sparse.

    Columns are named after their indices: x1, x2, ... Indices start at 1, or at 0 where the file
    has an index 0.

    Parameters
    ----------
    path : str or Path
        The file.
    clients : int or mapping
        As in :func:`mtcd.split`.
    features : int, optional
        The number of columns, where the file does not use the last ones.
    ignore : sequence of str
        Columns that are no features.

    Returns
    -------
    VerticalData
        The samples, split over the clients.

    Examples
    --------
    >>> import mtcd, pathlib, tempfile
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "people.svm"
    >>> _ = file.write_text("1 1:50 3:2\n0 2:20\n")
    >>> mtcd.read_svmlight(file, clients={"clinic": ["x1"], "lab": ["x2", "x3"]}).columns
    (('x1',), ('x2', 'x3'))
    """
    path = Path(path)
    matrix, labels, names = read_matrix(path, features)
    unknown = sorted(set(ignore) - set(names))
    if unknown:
        raise DataError(
            f"Column {unknown[0]!r} is to be ignored, but {path} has columns {names[0]} to "
            f"{names[-1]}."
        )
    if ignore:
        kept = [j for j, name in enumerate(names) if name not in set(ignore)]
        matrix = matrix[:, kept]
        names = [names[j] for j in kept]

    data = split(matrix, _whole(labels), clients, columns=names)
    share = matrix.nnz / (matrix.shape[0] * matrix.shape[1])
    note = f"{path.name} is sparse: {matrix.nnz:,} values, {share:.2%} of the matrix."
    return replace(data, notes=(note,), tables=(path,) * len(data.clients))


def _whole(labels: Array) -> NDArray[np.generic]:
    """The labels as whole numbers if they all are, so that classes are named 1 and not 1.0."""
    with np.errstate(invalid="ignore"):  # of labels that are too large
        whole = labels.astype(np.int64)
    if (whole == labels).all():
        return whole
    return labels


def read_matrix(path: Path, features: int | None) -> tuple[Any, Array, list[str]]:
    """A file in the svmlight format as a sparse matrix, its labels, whatever they are, and the
    names of its columns. ``features`` is their number, where the file may not use the last ones."""
    if features is not None:
        check_whole("features", features, least=1)
    labels, rows, indices, values = _parsed(path)

    # the format counts from 1, but scikit-learn and others write it from 0
    first = 1
    if 0 in indices:
        first = 0
    width = _width(path, _ending(indices, first), features)
    matrix = _matrix(path, values, indices - first, rows, width)
    return matrix, labels, [f"x{j + first}" for j in range(width)]


def _ending(indices: Any, first: int = 0) -> int:
    """The number of columns from ``first`` to the greatest index that is used."""
    if not len(indices):
        return 0
    return int(indices.max()) + 1 - first


def read_new_svmlight(path: Path, names: Sequence[str]) -> tuple[Any, Array, tuple[str, ...]]:
    """Samples for a model with columns of these names, as a sparse matrix, their labels, and notes
    for the user.

    Columns that the file does not use are 0; those that the model does not have are ignored.
    """
    places = [_number(name) for name in names]
    labels, rows, indices, values = _parsed(path)
    from_zero = 0 in indices
    if min(places) > 0 and from_zero:
        raise DataError(
            f"{path} has an index 0, but the columns of this model begin at 1: number them as "
            "before."
        )

    notes: tuple[str, ...] = ()
    # a model of a matrix counts from 0, most files from 1
    if min(places) == 0 and len(indices) and not from_zero:
        notes = (
            f"{path.name} has no index 0, but this model has a column x0: the indices are taken as "
            "the numbers of its columns. If the file counts from 1, write it with indices from 0.",
        )
    width = max(max(places) + 1, _ending(indices))
    return _matrix(path, values, indices, rows, width)[:, places], labels, notes


def _number(name: str) -> int:
    """The number of a column that is named as those of such files are."""
    if not re.fullmatch(r"x\d{1,8}", name):
        raise DataError(
            "The columns of an svmlight file are numbered, but this model was trained on "
            f"{name!r}: give a CSV or Parquet table with its columns."
        )
    return int(name[1:])


def _matrix(path: Path, values: Array, indices: Any, rows: Any, width: int) -> Any:
    matrix = scipy.sparse.csr_array((values, indices, rows), shape=(len(rows) - 1, width))
    # needed to see an index twice; the format asks for it, but not all writers do
    matrix.sort_indices()
    if not matrix.has_canonical_format:
        raise DataError(f"{path} gives an index twice in one line: keep one value for each.")
    return matrix


def _width(path: Path, used: int, features: int | None) -> int:
    """The number of columns."""
    if features is not None and features < used:
        raise DataError(
            f"{path} has {used:,} columns, more than features: {features}. Give {used} or more."
        )
    width = features or used
    if not width:
        raise DataError(
            f"{path} has no feature: lines look like '1 3:0.5 8:2', a label and index:value pairs."
        )
    # an index of a billion is a slip, or a hash: names of all columns would fill the memory
    if width > MOST_COLUMNS:
        raise DataError(
            f"{path} would have {width:,} columns, more than {MOST_COLUMNS:,}: check its indices."
        )
    return width


def _parsed(path: Path) -> tuple[Array, Any, Any, Array]:
    """Labels, and the arrays of a csr matrix: ends of the rows, indices as in the file, values."""
    counts: list[int] = []
    parts = [np.zeros(0)]
    lines = 0
    try:
        with cast(IO[bytes], _OPEN.get(path.suffix.lower(), open)(path, "rb")) as file:
            for chunk in _chunks(file):
                # checked as a whole first: np.fromstring would stop at a slip without an error
                matched = _LINES.match(chunk)
                assert matched is not None  # it matches no lines, too
                end = matched.end()
                if end < len(chunk):
                    raise _unreadable(path, chunk[end:], lines + chunk[:end].count(b"\n") + 1)
                # a pair has one colon
                counts += [line.count(b":") for line in chunk.split(b"\n") if line.strip()]
                if not chunk.isspace():
                    parts.append(np.fromstring(chunk.replace(b":", b" ").decode("ascii"), sep=" "))
                lines += chunk.count(b"\n")
    except FileNotFoundError:
        raise no_such_file(path) from None
    except (OSError, EOFError) as error:
        raise DataError(f"{path} cannot be read ({error}): is it a whole file?") from None

    # a line is its label, then pairs: with two numbers to a pair, that is where labels stand
    numbers = np.concatenate(parts)
    ends = np.concatenate([[0], np.cumsum(np.array(counts, dtype=np.int64))])

    places = 2 * ends[:-1] + np.arange(len(counts))  # of the labels among the numbers
    pairs = np.delete(numbers, places)

    indices = pairs[::2]
    if len(indices) and indices.max() > MOST_COLUMNS:
        raise DataError(
            f"{path} has an index of {indices.max():,.0f}, above {MOST_COLUMNS:,}: check its "
            "indices."
        )
    return numbers[places], ends, indices.astype(np.int32), np.ascontiguousarray(pairs[1::2])


def _chunks(file: IO[bytes]) -> Iterator[bytes]:
    """Whole lines, without comments and the ids of queries, which are no features."""
    while chunk := file.read(_CHUNK):
        chunk += file.readline()
        if not chunk.endswith(b"\n"):
            chunk += b"\n"
        # most files have neither, and looking for a byte is much quicker than a pattern
        if b"#" in chunk:
            chunk = re.sub(rb"#[^\n]*+", b"", chunk)
        if b"qid:" in chunk:
            chunk = _QUERY.sub(rb"\1", chunk)
        yield chunk


def _unreadable(path: Path, rest: bytes, line: int) -> DataError:
    # the start of the line is enough to find it
    shown = rest.split(b"\n", 1)[0][:60].decode("ascii", "replace")
    return DataError(
        f"Line {line} of {path} is not of the form '1 3:0.5 8:2', a label and index:value pairs of "
        f"numbers: {shown!r}."
    )
