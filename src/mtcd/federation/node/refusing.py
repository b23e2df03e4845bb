"""A process of a party that could not begin: it opens its links only to tell the others why."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

from mtcd.core.errors import MtcdError
from mtcd.federation.credentials.bundle import Bundle
from mtcd.federation.listening import runs_already
from mtcd.federation.node.context import NodeContext
from mtcd.federation.node.folder import FolderInUseError, RunFolder
from mtcd.federation.node.log import Log
from mtcd.federation.node.refusal import OWN_SECONDS, Refusal, UnableError


def refuse(
    bundle: Bundle,
    out: Path,
    reasons: Sequence[tuple[str, str]],
    show: Callable[[str], None] | None,
) -> None:
    """Tell all others that the owner of a bundle cannot take part, from a process that could not
    begin.

    Nobody is told if the run folder has a run, which goes on without this party until it is
    restarted, or if another process of this party is running. If its address is in use by another
    program, this party calls all its peers.

    Args:
        bundle: The bundle, with or without its network code.
        out: The run folder.
        reasons: The failures, as a sentence for this party and one for all others each.
        show: Gets what is shown on the screen; None shows nothing.
    """
    log = Log(bundle.config.name, None, show)
    with ExitStack() as open_ones:
        # Before the links are opened: the other process of this party would lose its own.
        if _is_busy(out, open_ones):
            return
        context = _context(bundle, log)
        if context is None:
            return
        open_ones.callback(context.close)
        told = UnableError(bundle.config.name, " ".join(shared for _, shared in reasons))
        for own, _ in reasons:
            log.say("failed", f"Cannot take part: {own}")
        log.say(
            "telling",
            f"Telling the other parties, for {OWN_SECONDS:.0f} s at most. Ctrl-C ends this.",
        )
        Refusal(context, lambda: False).tell(told)


def _is_busy(out: Path, open_ones: ExitStack) -> bool:
    """Whether a run folder has a run, or is in use; otherwise it is locked until the end, if it
    exists."""
    if not out.exists():
        return False
    try:
        folder = RunFolder(out)
    except FolderInUseError:
        return True
    except MtcdError:  # it cannot be used, which may be the reason why this party cannot take part
        return False
    open_ones.callback(folder.close)
    return folder.has_run


def _context(bundle: Bundle, log: Log) -> NodeContext | None:
    """The links of this party; None if another process of it has them, or they cannot be opened at
    all."""
    try:
        return NodeContext(bundle, log)
    except MtcdError:
        if runs_already(bundle):
            return None
    # Without an address of its own: what holds the port may be any program.
    calling = bundle.config.model_copy(update={"address": None, "listen": None})
    try:
        return NodeContext(replace(bundle, config=calling), log)
    except MtcdError:
        return None
