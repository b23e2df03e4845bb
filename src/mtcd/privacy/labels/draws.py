"""What makes a table's draws the same every time, and the account of what was spent: a file beside
the table, which only its owner can read.

Draws follow from the secret in it, from the labels of the whole table and from the settings. The
same labels with the same settings have the same draws in every training, after every restart and
in every federation, so that nothing can be averaged, and are spent once. Other labels or another
epsilon have draws that are independent of them: what they spend adds up.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
from collections.abc import Callable
from dataclasses import asdict, dataclass, fields
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

from mtcd.core.errors import ConfigError, MtcdError, system_reason
from mtcd.core.files import locked, replaced
from mtcd.privacy.settings import Labels, LabelSource

SUFFIX = ".mtcd-labels.json"
FORMAT = 1
MODE = 0o600
"""Of the file: who has the secret can take the noise off."""
SECRET_BYTES = 32
DIGEST_BYTES = 16

Result = TypeVar("Result")


@dataclass(frozen=True)
class LabelRelease:
    """Labels of a table that were randomised, once.

    ``labels``: a digest of the true ones, keyed with the secret. ``mechanism``: how they were
    randomised. ``epsilon``: None where that gives no guarantee.
    """

    began: str
    holder: str
    mechanism: str
    epsilon: float | None
    labels: str

    def __post_init__(self) -> None:
        kinds = {"str": str, "float | None": (int, float, type(None))}
        for one in fields(self):
            if not isinstance(getattr(self, one.name), kinds[str(one.type)]):  # type: ignore[arg-type]
                raise ValueError(f"{one.name} is {getattr(self, one.name)!r}")

    @property
    def identity(self) -> tuple[str, float | None, str]:
        """What two releases with the same draws have in common."""
        return self.mechanism, self.epsilon, self.labels


class TableDraws:
    """The secret and the releases of one table.

    Parameters
    ----------
    table : Path
        The table.
    folder : Path, optional
        Where the file is, if not beside the table.
    """

    def __init__(self, table: Path, folder: Path | None = None) -> None:
        self.table = Path(os.path.realpath(table))
        self.path = (folder or self.table.parent) / f"{self.table.name}{SUFFIX}"

    def secret(self) -> bytes:
        """The secret of this table: drawn from the operating system once, then read."""
        return self._change(lambda secret, releases: (releases, secret))

    def enter(self, release: LabelRelease) -> None:
        """Enter a release, unless it is there: the same one is spent once."""

        def added(
            secret: bytes, releases: tuple[LabelRelease, ...]
        ) -> tuple[tuple[LabelRelease, ...], None]:
            known = any(one.identity == release.identity for one in releases)
            return (releases if known else (*releases, release)), None

        self._change(added)

    def releases(self) -> tuple[LabelRelease, ...]:
        """All releases, the oldest first; none if there is no file."""
        try:
            return self._read(self.path.read_bytes())[1]
        except FileNotFoundError:
            return ()
        except OSError as error:
            raise MtcdError(f"{self.path} cannot be read: {system_reason(error)}.") from None

    @property
    def epsilon(self) -> float | None:
        """What all releases have spent together: the sum; None if one of them gives no
        guarantee."""
        total = 0.0
        for one in self.releases():
            if one.epsilon is None:
                return None
            total += one.epsilon

        return total

    def _read(self, content: bytes) -> tuple[bytes, tuple[LabelRelease, ...]]:
        if not content:  # made to be locked
            return os.urandom(SECRET_BYTES), ()
        try:
            found = json.loads(content)
            if found["format"] != FORMAT:
                raise ValueError(
                    f"its format is {found['format']!r}, and this version of mtcd reads {FORMAT}"
                )
            secret = bytes.fromhex(found["secret"])
            if len(secret) != SECRET_BYTES:
                raise ValueError("its secret has another length")
            return secret, tuple(LabelRelease(**one) for one in found["releases"])
        except (ValueError, TypeError, KeyError, RecursionError) as error:
            raise MtcdError(
                f"{self.path}, which keeps the draws of the labels of {self.table.name}, cannot be "
                f"read: {error}. Restore it from a backup: other draws would spend their budget "
                "again."
            ) from None

    def _change(
        self,
        change: Callable[
            [bytes, tuple[LabelRelease, ...]], tuple[tuple[LabelRelease, ...], Result]
        ],
    ) -> Result:
        """Change the releases, with no other process in between."""
        try:
            with locked(self.path, MODE) as content:
                secret, before = self._read(content)
                releases, result = change(secret, before)
                kept = {
                    "format": FORMAT,
                    "table": self.table.name,
                    "secret": secret.hex(),
                    "releases": [asdict(one) for one in releases],
                }
                if not content or releases != before:
                    replaced(self.path, json.dumps(kept, indent=1).encode(), MODE)
                return result
        except OSError as error:
            raise ConfigError(
                f"{self.path} cannot be written ({system_reason(error)}), where the draws of "
                "the labels are kept: allow this user to write there, or train on a copy of the "
                "table that stays in use."
            ) from None


def draws_of(source: LabelSource) -> TableDraws | None:
    """Where the draws of these labels are kept: beside their table, or in the folder that is given
    instead; None for as long as this process runs."""
    if source.table is None:
        return None if source.instead is None else _in_folder(source.instead)

    beside = TableDraws(source.table)
    if source.instead is None:
        return beside

    instead = TableDraws(source.table, source.instead)
    writable = os.access(beside.path.parent, os.W_OK) and beside.table.exists()
    return instead if instead.path.exists() or not writable else beside


def entered(
    labels: Labels, source: LabelSource, mechanism: str, epsilon: float | None, seeded: str | None
) -> tuple[bytes, str]:
    """Enter a release of these labels in the account of their table.

    Parameters
    ----------
    labels : array
        The true ones.
    source : LabelSource
        Where they are from.
    mechanism : str
        What happens to a label, in words.
    epsilon : float, optional
        The budget of each label; None if there is no guarantee.
    seeded : str, optional
        The settings, for draws that follow from them and from the labels and are in no account.

    Returns
    -------
    secret : bytes
        What the draws follow from.
    purpose : str
        What they are for: the same for the same release.
    """
    if seeded is not None and source.holder:
        raise ConfigError(
            "privacy.labels.insecure_seeded_draws is for studies in one process: in a "
            "federation, it would protect nobody. Leave it out."
        )
    draws = None if seeded is not None else draws_of(source)
    if seeded is not None:
        secret = insecure_secret(f"{seeded} {labels.tolist()!r}")
    elif draws is None:
        secret = secret_of_process()
    else:
        secret = draws.secret()

    digest = digest_of(labels, secret)
    if draws is not None:
        began = datetime.now(UTC).isoformat(timespec="seconds")
        draws.enter(LabelRelease(began, source.holder, mechanism, epsilon, digest))

    return secret, f"labels {digest} {epsilon!r} {mechanism}"


def _in_folder(folder: Path) -> TableDraws:
    folder.mkdir(parents=True, exist_ok=True)
    return TableDraws(folder / "labels")


@cache
def secret_of_process() -> bytes:
    """The secret for labels that are of no file."""
    return os.urandom(SECRET_BYTES)


def insecure_secret(settings: str) -> bytes:
    """For trainings that are to be repeated: it is no secret."""
    return hashlib.blake2b(
        f"insecure seeded draws {settings}".encode(), digest_size=SECRET_BYTES
    ).digest()


def digest_of(labels: Labels, secret: bytes) -> str:
    """A digest of labels that tells nothing of them to those without the secret."""
    numeric = labels.dtype.kind in "biuf"
    content = _bytes(labels) if numeric else repr(labels.tolist()).encode()
    shape = f"{labels.dtype.kind} {labels.shape} ".encode()
    return hmac.new(secret, shape + content, hashlib.sha256).hexdigest()[: 2 * DIGEST_BYTES]


def _bytes(labels: Labels) -> bytes:
    """The numbers as bytes, whatever their precision."""
    return labels.astype("<f8").tobytes()


class LabelBudgets:
    """The account of labels, beside those of features."""

    def facts(self, table: Path) -> dict[str, Any] | None:
        """What the labels of a table have spent, as plain values; None without a release."""
        draws = TableDraws(table)
        releases = draws.releases()
        if not releases:
            return None
        return {
            "file": str(draws.path),
            "epsilon": draws.epsilon,
            "releases": [
                {name: value for name, value in asdict(one).items() if name != "labels"}
                for one in releases
            ],
        }

    def lines(self, facts: dict[str, Any]) -> list[str]:
        """The same in words, a line for each release."""
        return [
            f"{one['began']}: labels, {one['mechanism']}, {_promise(one['epsilon'])}"
            for one in facts["releases"]
        ]


def _promise(epsilon: float | None) -> str:
    """What a release promises, in words."""
    return "no guarantee" if epsilon is None else f"epsilon {epsilon:g}"


LABEL_BUDGETS = LabelBudgets()
