"""Attachments: what features keep beside a run, such as a record of its messages.

A feature says in its ``feature.py`` how an attachment is made and read:

- under ``mtcd.listeners``, by the name of the attachment, a function that makes a
  ``RunListener`` for each training: it sees every message, and makes the attachment in the end;
- or under ``mtcd.ended``, a function of a run that has ended and of its data, which makes the
  attachment, or returns None where there is nothing to keep;
- under ``mtcd.attachments``, by the same name, the class of the attachment, which reads it again;
- in ``run_files`` the file that it writes into the folder of a run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, Self, cast

from mtcd.core import features
from mtcd.protocol.engine import Listener
from mtcd.protocol.ledger.ledger import Ledger
from mtcd.protocol.party import Parties
from mtcd.training.history import Measurement

if TYPE_CHECKING:
    from mtcd.training.run import Run
    from mtcd.training.training import Training


class Attachment(Protocol):
    """Something beside a run, with a file of its own in the folder of the run."""

    file: ClassVar[str]
    """The name of the file."""

    def write(self, path: Path) -> None:
        """Write it to a file, from which ``read`` makes it again."""

    @classmethod
    def read(cls, path: Path) -> Self:
        """Read the file; raises ``ValueError`` or ``KeyError`` if it is not valid."""


class RunListener(Listener, Protocol):
    """A listener of one training, whose result is attached to the run."""

    def attachment(
        self,
        rows: Sequence[Measurement],
        parameters: Sequence[Any] | None = None,
        running: bool = False,
    ) -> Attachment:
        """What was seen, up to the last of these measurements.

        Parameters
        ----------
        rows
            The measurements so far.
        parameters
            Those of the model, at the end of a training that did not diverge.
        running
            Whether it goes on training, in another thread.
        """


def listeners_of(training: Training, parties: Parties, ledger: Ledger) -> dict[str, RunListener]:
    """The listeners of a training, by the names of their attachments."""
    found = {}
    for name, home in features.parts("mtcd.listeners").items():
        # Loaded here, at a training, and not with the package: a feature may need much.
        make = cast(Any, features.load(home))
        found[name] = make(training, parties, ledger)

    return found


def with_ended(run: Run, data: Any) -> Run:
    """The run with what features make of it once it has ended.

    Parameters
    ----------
    run
        The run, of which nothing changes but its attachments.
    data
        What it was trained on.
    """
    found = {}
    for name, home in features.parts("mtcd.ended").items():
        attachment = cast(Any, features.load(home))(run, data)
        if attachment is not None:
            found[name] = attachment

    # The same object where nothing was added, as most runs have nothing.
    if not found:
        return run
    return replace(run, attachments={**run.attachments, **found})


def attachment_names() -> frozenset[str]:
    """The names of all attachments that a run may have."""
    return frozenset(features.parts("mtcd.attachments"))


def read_attachments(folder: Path) -> Mapping[str, Attachment]:
    """The attachments in the folder of a run, by name. Runs of older versions have fewer."""
    found = {}
    for name, home in features.parts("mtcd.attachments").items():
        kind = cast(type[Attachment], features.load(home))
        # By the file, not by what run.json says: a feature that was installed later finds nothing.
        if (folder / kind.file).is_file():
            found[name] = kind.read(folder / kind.file)

    return found
