"""Encoding of labels, from the label holder to the parties that may know them. Every part is
checked on arrival.

A line of JSON names their kind and the distinct texts; then follows one number of eight bytes per
sample: the label itself, or the index of its text. If samples have weights, the line has
``"weights": true``, and these follow, one number of eight bytes per sample.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mtcd.core.arrays import Array
from mtcd.core.errors import DataError, WireError
from mtcd.data.checks import check_labels, check_weights

Labels = NDArray[np.generic]
TEXT, WEIGHTS = "text", "weights"
KINDS = {"f": "<f8", "i": "<i8", "u": "<u8", TEXT: "<i8"}
LONGEST_CHARACTERS = 1000


def labels_to_bytes(labels: Labels, weights: Array | None = None) -> bytes:
    """Encode the labels of the common samples, in the agreed order, and their weights, if they have
    any."""
    check_labels(labels)
    # Booleans are kept as whole numbers; all receivers must get the same kind.
    head: dict[str, Any] = {"kind": {"b": "i", "U": TEXT}.get(labels.dtype.kind, labels.dtype.kind)}
    numbers: NDArray[Any] = labels
    if head["kind"] == TEXT:
        texts, numbers = np.unique(labels, return_inverse=True)
        head["texts"] = texts.tolist()
        if not _are_texts(head["texts"]):
            raise DataError(
                f"A label is empty, or longer than {LONGEST_CHARACTERS} letters: shorten it, or "
                "code the classes."
            )
    weighed = b""
    if weights is not None:
        # Checked before sending too: an error here names the column, one at the receiver cannot.
        check_weights(weights, len(labels))
        head[WEIGHTS], weighed = True, weights.astype("<f8").tobytes()
    return (
        json.dumps(head).encode() + b"\n" + numbers.astype(KINDS[head["kind"]]).tobytes() + weighed
    )


def labels_from_bytes(data: bytes, samples: int) -> tuple[Labels, Array | None]:
    """Decode and check the labels of this number of samples, and their weights. Errors contain
    neither."""
    line, mark, rest = bytes(data).partition(b"\n")
    if not mark:
        raise WireError("labels", "have no head")
    kind, texts, weighted = _head(line)
    parts = 2 if weighted else 1
    if len(rest) != 8 * samples * parts:
        raise WireError("labels", f"are not those of {samples} samples")
    weights = None
    if weighted:
        weights = _weights(rest[8 * samples :], samples)
    labels: Any = np.frombuffer(rest, KINDS[kind], samples).astype(KINDS[kind][1:])
    if kind == TEXT:
        # Every text must occur and every index have a text: the classes of a model are those that
        # come here, and all parties must find the same ones.
        if not np.array_equal(np.unique(labels), np.arange(len(texts))):
            raise WireError("labels", "name other texts than those that come with them")
        labels = np.array(texts)[labels]
    try:
        check_labels(labels)
    # The error of `check_labels` shows values, which are private. It is not chained for the same
    # reason.
    except DataError:
        raise WireError(
            "labels", "are not finite numbers or texts, at least two of them different"
        ) from None
    return np.asarray(labels), weights


def _weights(data: bytes, samples: int) -> Array:
    weights = np.frombuffer(data, "<f8").astype(np.float64)
    try:
        check_weights(weights, samples)
    except DataError:
        raise WireError(
            "weights", "are not finite numbers of 0 or more, at least one of them above 0"
        ) from None
    return weights


def _head(line: bytes) -> tuple[str, list[str], bool]:
    try:
        head = json.loads(line)
    except (ValueError, RecursionError):
        raise WireError("labels", "have a head that cannot be read") from None
    kind = head.get("kind") if isinstance(head, dict) else None
    if not isinstance(kind, str) or kind not in KINDS:
        raise WireError("labels", "are of an unknown kind")
    weighted = WEIGHTS in head
    expected = {"kind", "texts"} if kind == TEXT else {"kind"}
    if head.pop(WEIGHTS, True) is not True or head.keys() != expected:
        raise WireError("labels", "have missing or unknown keys")
    texts = head.get("texts", [])
    if kind == TEXT and not _are_texts(texts):
        raise WireError("labels", "come with texts that are not sorted, different and valid")
    return kind, texts, weighted


def _are_texts(texts: Any) -> bool:
    """Whether the texts are sorted, distinct, and preserved by NumPy and by files."""
    if not isinstance(texts, list) or not texts:
        return False
    for text in texts:
        if not isinstance(text, str) or not 0 < len(text) <= LONGEST_CHARACTERS:
            return False
        if not _is_valid(text):
            return False
    # NumPy drops trailing zeros of texts, and sorts by code points: a list that NumPy changes would
    # give other classes here than at the label holder.
    return bool(np.unique(texts).tolist() == texts)


def _is_valid(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
