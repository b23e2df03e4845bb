"""The trace of a training: its network, and which token went from whom to whom. A file of the run
folder."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from itertools import accumulate, chain, pairwise
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray

from mtcd.core.files import read_zip
from mtcd.network.kinds import kind_of
from mtcd.network.topology import Network
from mtcd.protocol.party import SERVER
from mtcd.reporting.trace.tracer import MOST_WINDOWS, WINDOW, Tracer
from mtcd.training.history import Measurement

FORMAT = 1
MOST_EDGES = 20_000
MOST_KEPT = WINDOW * MOST_WINDOWS

Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Trace:
    """The network of a training and the messages that carried a token on it, most of them left out
    of a long one.

    Clients are numbered as in ``clients``, the server is -1.
    """

    file: ClassVar[str] = "trace.npz"

    clients: tuple[str, ...]
    kind: str
    """Of the network: 'cycle', 'grid', ..., or 'network'."""
    edges: Ints
    """Links, a row (k, j) each: all of them, or ``MOST_EDGES`` of many."""
    edges_total: int
    server: bool
    clusters: Ints | None = None
    """The cluster of each client; None where tokens roam everywhere."""
    tokens: int = 0
    """The number of tokens; of methods without tokens, as if each client had one."""
    messages: Ints = field(default_factory=lambda: np.empty((0, 4), np.int64))
    """Token, sender, receiver and iteration, a row each, in the order in which they were sent."""
    total: int = 0
    """The number of all messages."""
    windows: Ints | None = None
    """Ranges [start, end) of rows that followed each other directly; None where no message was left
    out."""
    before: Ints | None = None
    """The visits of each client that had ended when each window began, a row each; None where they
    are not known."""
    visits: Ints | None = None
    """The visits of each client; None where they are not known."""
    last_visits: Ints | None = None
    """The iteration of the last one; -1: none yet."""
    norms: NDArray[np.float64] | None = None
    """The Euclidean norms of the clients' blocks at the end; None where there is no model."""

    @classmethod
    def of(cls, network: Network, clusters: Sequence[Sequence[int]] | None, server: bool) -> Self:
        """The trace before the training."""
        own = None
        if clusters is not None:
            # every client is in one cluster: nothing stays empty
            own = np.empty(network.size, np.int64)
            for c, members in enumerate(clusters):
                own[list(members)] = c
        return cls(network.clients, kind_of(network), _links(network), network.edges, server, own)

    def with_messages(
        self, tracer: Tracer, rows: Sequence[Measurement], latest: bool = False
    ) -> Self:
        """The trace with what the tracer has seen, up to the last of these measurements.

        ``latest``: the messages since the last call are the last window. Another thread may go on
        training.
        """
        if tracer.rounds:
            return self._exchanged(tracer.rounds)

        # copies first: another thread may go on adding to them
        windows = [list(window) for window in tracer.windows]
        spacing = tracer.spacing
        total = tracer.total
        before = [list(visits) for visits in tracer.before]
        thinned = spacing > WINDOW
        if latest and thinned:
            kept_to = (len(windows) - 1) * spacing + WINDOW
            windows.append([sent for number, sent in tracer.latest() if number >= kept_to])
            if before and tracer.latest_before:
                before.append(tracer.latest_before)
            else:
                before = []

        messages = np.array(list(chain(*windows)), np.int64).reshape(-1, 4)
        messages[:, 3] = messages[:, 3].clip(min=0)  # a first pass counts up to 0

        visits, last = _visits(tracer, rows)
        tokens = tracer.tokens
        if not tokens and total:
            tokens = len(self.clients)

        complete = replace(
            self,
            tokens=tokens,
            messages=messages,
            total=len(messages),
            windows=None,
            before=None,
            visits=visits,
            last_visits=last,
        )
        if not thinned:
            return complete
        ranges = _ranges([len(window) for window in windows if window])
        return replace(complete, total=total, windows=ranges, before=_before(windows, before))

    def _exchanged(self, rounds: int) -> Self:
        """The trace after rounds in which all neighbours exchanged messages: a few rounds of
        many."""
        both = np.concatenate([self.edges, self.edges[:, ::-1]])[:MOST_KEPT]
        whole = 2 * self.edges_total
        shown = min(rounds, MOST_KEPT // max(1, len(both)))

        # evenly spread over the training, with the first and the last round
        at = np.linspace(1, rounds, shown).round().astype(np.int64)
        messages = np.column_stack(
            [np.tile(both[:, 0], shown), np.tile(both, (shown, 1)), np.repeat(at, len(both))]
        )
        windows = None
        if len(both) < whole or shown < rounds:
            windows = _ranges([len(both)] * shown)
        everyone = np.full(len(self.clients), rounds, np.int64)
        return replace(
            self,
            tokens=len(self.clients),
            messages=messages,
            total=whole * rounds,
            windows=windows,
            visits=everyone,
            last_visits=everyone,
        )

    def with_blocks(self, parameters: Sequence[Any]) -> Self:
        """The trace with the norms of these parameters, client by client; what follows the clients'
        is left out."""
        return self.with_norms([block_norm(theta) for theta in parameters[: len(self.clients)]])

    def with_norms(self, norms: Sequence[float]) -> Self:
        """The trace with these norms of blocks."""
        return replace(self, norms=np.array(norms, float))

    def write(self, path: Path) -> None:
        """Write all arrays that are known to one compressed file, which :meth:`read` reads."""
        known = {one.name: getattr(self, one.name) for one in fields(self)}
        arrays = {name: np.asarray(value) for name, value in known.items() if value is not None}
        np.savez_compressed(path, format=np.array(FORMAT), **arrays)  # type: ignore[arg-type]

    @classmethod
    def read(cls, path: Path) -> Self:
        """Read a file; raises ``ValueError`` or ``KeyError`` if it is not valid."""
        # files may be from strangers: a pickle would run their code
        with np.load(read_zip(path), allow_pickle=False) as arrays:
            found = dict(arrays)
        if found.pop("format", 0) != FORMAT:
            raise ValueError(f"{path.name} is of another version")

        # single values are arrays without dimensions in such a file
        given: dict[str, Any] = dict(found)
        plain = {"kind": str, "edges_total": int, "server": bool, "tokens": int, "total": int}
        for name, kind in plain.items():
            if name in found:
                given[name] = kind(found[name].item())
        given["clients"] = tuple(found["clients"].tolist())
        trace = cls(**given)
        _check(trace, path.name)
        return trace


def block_norm(theta: Any) -> float:
    """The Euclidean norm of a block: an array, or tensors by name without buffers. Trees have
    none."""
    if hasattr(theta, "trees"):
        return math.nan
    if isinstance(theta, Mapping):
        squares = 0.0
        for name, value in theta.items():
            if not name.startswith("buffer."):  # running means and the like are not trained
                squares += float((value.detach().double() ** 2).sum())
        return math.sqrt(squares)
    return float(np.linalg.norm(theta))


def _links(network: Network) -> Ints:
    """The links, or of too many an even selection of them."""
    # every stride-th link, counted over all clients: ``ahead`` is how far into the next one's
    stride = max(1, math.ceil(network.edges / MOST_EDGES))
    ahead = 0
    chosen: list[tuple[int, int]] = []
    for k, near in enumerate(network.neighbours):
        later = near[bisect_right(near, k) :]  # each link once
        # so that links of all clients are among them, however many each has
        chosen.extend((k, j) for j in later[ahead::stride])
        ahead = (ahead - len(later)) % stride
    return np.array(chosen, np.int64).reshape(-1, 2)


def _ranges(lengths: Sequence[int]) -> Ints:
    """The ranges of rows of windows of these lengths."""
    return np.array(list(pairwise([0, *accumulate(lengths)])), np.int64).reshape(-1, 2)


def _before(windows: Sequence[Sequence[Any]], before: Sequence[Sequence[int]]) -> Ints | None:
    """The visits before each window that has messages; None where they are not known for all."""
    known = [visits for window, visits in zip(windows, before, strict=False) if window]
    if len(known) < sum(map(bool, windows)):
        return None
    return np.array(known, np.int64)


def _visits(tracer: Tracer, rows: Sequence[Measurement]) -> tuple[Ints | None, Ints | None]:
    """The visits of each client, and the iterations of the last ones."""
    K = tracer.clients
    iterations = [0, *(row.iteration for row in rows)]
    visits = np.array(tracer.visits[:K])
    polls = np.array(tracer.polls[:K])
    if tracer.ledger.hops:
        # visits are known by the hops on the ledger, which measurements have with the iterations
        hops = [0, *(row.hops for row in rows)]
        last = np.floor(np.interp(tracer.last_hops[:K], hops, iterations)).astype(np.int64)
    elif polls.any():
        visits = polls
        last = np.array(tracer.last_polls[:K]) * tracer.hops_per_sync
    elif tracer.total:  # every client takes part in every iteration
        visits = last = np.full(K, iterations[-1])
    else:
        return None, None
    return visits, np.where(visits > 0, last, -1)


def _check(trace: Trace, name: str) -> None:
    """Reject a file whose parts do not fit together."""
    # the page would index with these numbers: a file may be from anybody
    K = len(trace.clients)
    if not (_fits_shapes(trace, K) and _fits_numbers(trace, K) and _fits_windows(trace, K)):
        raise ValueError(f"the parts of {name} do not fit together")


def _fits_shapes(trace: Trace, K: int) -> bool:
    """Whether links and messages are rows, and the others have a value for each client."""
    if trace.edges.shape[1:] != (2,) or trace.messages.shape[1:] != (4,):
        return False
    of_clients = (trace.clusters, trace.visits, trace.last_visits, trace.norms)
    return all(one is None or one.shape == (K,) for one in of_clients)


def _fits_numbers(trace: Trace, K: int) -> bool:
    """Whether links and messages are between clients that exist, and of tokens that do."""
    return (
        _within(trace.edges, 0, K)
        and _within(trace.messages[:, 1:3], SERVER, K)
        and _within(trace.messages[:, 0], 0, max(1, trace.tokens))
    )


def _fits_windows(trace: Trace, K: int) -> bool:
    """Whether windows are ranges of messages, with the visits of all clients before each, or none
    at all."""
    if trace.windows is None:
        return trace.before is None
    if trace.windows.shape[1:] != (2,) or not _within(trace.windows, 0, len(trace.messages) + 1):
        return False
    return trace.before is None or trace.before.shape == (len(trace.windows), K)


def _within(numbers: Ints, low: int, high: int) -> bool:
    if numbers.dtype.kind != "i":
        return False
    return not numbers.size or bool(low <= numbers.min() and numbers.max() < high)
