"""Where the clients of a network are drawn: the same places for the same network, on every machine
and visit.

Standard kinds of networks have the places that everybody draws. Other networks are drawn so that
distances on the paper are those along the links (stress majorisation, as Kamada and Kawai). Nothing
is random, and no eigenvectors of a library are used, whose signs differ from machine to machine.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import scipy
from numpy.typing import NDArray

Places = NDArray[np.float64]
Links = NDArray[np.int64]

PIVOTS = 40
WORK = 4e7
"""Pairs of clients, times steps: what the improvement of a drawing may take, about a second."""
STEPS = (6, 120)
MOST_IMPROVED = 3000  # clients: it takes time and memory for each pair of them
MARGIN = 0.04
DIGITS = 4


def layout(
    kind: str, size: int, edges: Links, clusters: Sequence[int] | None, dense: bool = False
) -> Places:
    """A place in the unit square for each client. ``dense``: the edges are too many to say anything
    about places."""
    if kind == "grid":
        places = _grid(size, edges)
    elif kind == "path":
        places = _arc(size)
    elif kind == "star" and size > 2:
        places = np.concatenate([[[0.0, 0.0]], _circle(size - 1)])  # client 0 is the centre
    elif kind in ("cycle", "complete", "empty") or dense:
        # neighbours of a cycle belong side by side; elsewhere the members of a cluster do
        order = np.arange(size)
        if clusters is not None and kind != "cycle":
            order = np.argsort(clusters, kind="stable")
        places = np.empty((size, 2))
        places[order] = _circle(size)
    else:
        places = _by_pieces(size, edges)
    return np.round(_in_unit_square(places), DIGITS)


def _circle(size: int) -> Places:
    angles = np.arange(size) * (2 * np.pi / max(1, size)) - np.pi / 2
    return np.column_stack([np.cos(angles), np.sin(angles)])


def _arc(size: int) -> Places:
    """A path: an open circle, or a line of few."""
    if size <= 8:
        return np.column_stack([np.arange(size, dtype=float), np.zeros(size)])
    angles = np.linspace(-1.25 * np.pi, 0.25 * np.pi, size)
    return np.column_stack([np.cos(angles), np.sin(angles)])


def _grid(size: int, edges: Links) -> Places:
    """Rows from the top; client 0 is linked to the next one in its row, and to the first one of the
    next row."""
    columns = int(edges[edges[:, 0] == 0].max())
    numbers = np.arange(size)
    return np.column_stack([numbers % columns, -(numbers // columns)]).astype(float)


def _by_pieces(size: int, edges: Links) -> Places:
    """Each connected piece by itself, in rows of squares, the largest first."""
    links = scipy.sparse.csr_array(
        (np.ones(len(edges)), (edges[:, 0], edges[:, 1])), shape=(size, size)
    )
    count, piece = scipy.sparse.csgraph.connected_components(links, directed=False)
    pieces = [np.flatnonzero(piece == p) for p in range(count)]
    pieces.sort(key=lambda own: (-len(own), own[0]))

    # a square of area n for a piece of n clients: the rows fill a square, but for a tenth
    places = np.empty((size, 2))
    width = math.inf
    if count > 1:
        width = 1.1 * math.sqrt(size)
    left = 0.0
    top = 0.0
    height = 0.0

    for own in pieces:
        side = math.sqrt(len(own))
        if left > 0 and left + side > width:
            left = 0.0
            top = top - height
            height = 0.0

        inside = _in_unit_square(_by_distance(links[own][:, own]))
        places[own] = inside * side + (left, top - side)
        left = left + side
        height = max(height, side)
    return places


def _by_distance(links: scipy.sparse.csr_array) -> Places:
    """A connected piece, by the distances along its links."""
    size = links.shape[0]
    if size <= 2:
        return np.column_stack([np.arange(size, dtype=float), np.zeros(size)])
    first = _start(links)
    if size > MOST_IMPROVED:
        return first
    return _improved(first, _distances(links))


def _distances(links: scipy.sparse.csr_array, client: int | None = None) -> Places:
    """The distances of all clients, or to one, along the links."""
    found: Places = scipy.sparse.csgraph.shortest_path(
        links, directed=False, unweighted=True, indices=client
    )
    return found


def _start(links: scipy.sparse.csr_array) -> Places:
    """A first drawing: the two main directions of the squared distances to some clients that are
    far apart."""
    size = links.shape[0]
    rows = [_distances(links, 0)]
    while len(rows) < min(PIVOTS, size):
        rows.append(_distances(links, int(np.argmax(np.min(rows, axis=0)))))

    # classical scaling: centred, the squared distances are inner products of places
    squares = -0.5 * np.column_stack(rows) ** 2
    centred = squares - squares.mean(axis=0) - squares.mean(axis=1, keepdims=True) + squares.mean()
    inner = centred.T @ centred
    # fixed starts, not random ones, that are orthogonal to few vectors
    first = _main_direction(inner, np.linspace(-1, 1, len(rows)))
    inner = inner - np.outer(first, first) * (first @ inner @ first)
    second = _main_direction(inner, np.cos(np.arange(len(rows))))
    # no two at one place
    wobble = 1e-3 * np.column_stack([np.cos(np.arange(size)), np.sin(np.arange(size))])
    drawn: Places = centred @ np.column_stack([first, second])
    scale = float(np.max(rows)) / 2 / max(1e-12, float(np.abs(drawn).max()))
    return drawn * scale + wobble


def _main_direction(matrix: Places, start: Places) -> Places:
    """The eigenvector of the largest eigenvalue, from a fixed start: always the same one, also of
    several."""
    vector = start
    # power iteration: slow if two are alike, but then either will do
    for _ in range(100):
        vector = matrix @ vector
        vector = vector / max(1e-300, float(np.linalg.norm(vector)))
    return vector


def _improved(places: Places, distances: Places) -> Places:
    """Steps that lower the sum over pairs of (distance drawn / distance along links - 1)^2."""
    size = len(places)
    weights = 1.0 / np.maximum(distances, 1.0) ** 2
    np.fill_diagonal(weights, 0.0)
    pulls = weights * distances
    totals = weights.sum(axis=1, keepdims=True)
    for _ in range(int(np.clip(WORK / size**2, *STEPS))):
        apart = np.hypot(*(places[:, None, i] - places[None, :, i] for i in (0, 1)))
        np.fill_diagonal(apart, 1.0)
        ratios = pulls / np.maximum(apart, 1e-9)
        # each client takes the mean of the places at which the others want it
        moved: Places = (
            weights @ places + ratios.sum(axis=1, keepdims=True) * places - ratios @ places
        )
        places = moved / totals
    return places


def _in_unit_square(places: Places) -> Places:
    """The same drawing as large as the square allows, in its middle."""
    low = places.min(axis=0)
    high = places.max(axis=0)
    scale = max(float((high - low).max()), 1e-12)
    centred: Places = (places - (low + high) / 2) / scale * (1 - 2 * MARGIN)
    return centred + 0.5
