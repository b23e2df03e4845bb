"""Private set intersection in a process of its own: the library keeps the interpreter to itself for
minutes.

The party writes a job to the standard input of the process, and reads lines of progress and the
result from its standard output. If the party ends in any way, the process finds its output closed
at the next line, and ends too.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from time import monotonic
from typing import Any

from mtcd.core.errors import DataError, MtcdError, WireError
from mtcd.federation.alignment import Answerer, Asker, answerer, asker
from mtcd.federation.node.chunks import unwrap, wrap

REQUEST, SHARED, RESPOND = "request", "shared", "respond"
STEPS = {REQUEST: "blinding ids", SHARED: "matching ids", RESPOND: "blinding ids"}


@dataclass
class AlignmentProgress:
    """The progress of an alignment, which one thread writes and another reads."""

    # Written by the thread that computes, read by the one that answers the operator: single
    # attributes, so that no lock is needed, and a mixture of two moments does no harm.
    step: str = ""
    share: float = 0.0
    """The share of this step that is done."""
    _began: float = field(default_factory=monotonic)

    def begin(self, step: str) -> None:
        """Start a step: its share is 0, and its seconds count from now."""
        self.step, self.share, self._began = step, 0.0, monotonic()

    def facts(self) -> dict[str, Any] | None:
        """Step, share and seconds, for the operator; None if nothing is computed."""
        if not self.step:
            return None
        return {
            "step": self.step,
            "share": round(self.share, 3),
            "seconds": round(monotonic() - self._began, 1),
        }


def asker_apart(
    kind: str, ids: Sequence[str], secret: bytes | None, progress: AlignmentProgress
) -> Asker:
    """The label holder's side; of private set intersection, in processes of its own."""
    made = asker(kind, ids, secret)  # checks the ids, and that the library is installed
    return ApartAsker(ids, progress) if kind == "psi" else made


def answerer_apart(
    kind: str, ids: Sequence[str], secret: bytes | None, progress: AlignmentProgress
) -> Answerer:
    """The side of any other party; of private set intersection, in processes of its own."""
    made = answerer(kind, ids, secret)
    return ApartAnswerer(ids, progress) if kind == "psi" else made


class ApartAsker(Asker):
    """An asker whose computations run in a process each. It keeps the ephemeral key between
    them."""

    def __init__(self, ids: Sequence[str], progress: AlignmentProgress) -> None:
        self.ids, self.progress = ids, progress
        self._key = b""

    def request(self) -> bytes:
        # The next process needs the same key: the response is blinded with it.
        _, (self._key, made) = unwrap(compute(REQUEST, self.progress, self.ids), (), 2)
        return made

    def shared(self, response: bytes) -> set[str]:
        return set(json.loads(compute(SHARED, self.progress, self.ids, self._key, response)))


class ApartAnswerer(Answerer):
    """An answerer whose computations run in a process of their own."""

    def __init__(self, ids: Sequence[str], progress: AlignmentProgress) -> None:
        self.ids, self.progress = ids, progress

    def respond(self, request: bytes) -> bytes:
        return compute(RESPOND, self.progress, self.ids, request)


def compute(job: str, progress: AlignmentProgress, ids: Sequence[str], *parts: bytes) -> bytes:
    """The result of a job, computed in a process of its own."""
    progress.begin(STEPS[job])
    # -P: nothing from the working directory
    command = [sys.executable, "-P", "-m", "mtcd.federation.psi_process"]
    try:
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
            _write(process.stdin, wrap({"job": job}, json.dumps(list(ids)).encode(), *parts))
            result = _read(process.stdout, progress)
    finally:
        progress.step = ""
    # No result and no error: the process was killed, most often for want of memory.
    if result is None:
        raise MtcdError(_ended_early(process.returncode))
    return result


def _write(stream: Any, content: bytes) -> None:
    # Not the place to report it: why the process ended is known only once its output was read.
    with suppress(OSError):  # the process has ended: ``_read`` finds no result
        stream.write(content)
        stream.close()


def _read(stream: Any, progress: AlignmentProgress) -> bytes | None:
    """The result, after lines of progress; None if the process ended before. Raises the error of
    the job."""
    for line in stream:
        try:
            told = json.loads(line)
        except ValueError:  # cut off
            return None
        if "error" in told:
            raise DataError(told["error"])
        if "size" in told:
            result: bytes = stream.read(told["size"])
            # Fewer bytes than announced: the process died while it wrote the result.
            return result if len(result) == told["size"] else None
        progress.share = told["share"]
    return None


def _ended_early(code: int) -> str:
    how = f"was killed by signal {-code}" if code < 0 else f"ended with exit code {code}"
    return (
        f"The private set intersection failed: its process {how}, perhaps as the memory of this "
        "host ran out. Free memory; the label holder tries again, and must be restarted if it has "
        "ended itself."
    )


# In the process


def main() -> None:
    """Compute one job, from standard input to standard output."""
    # The terminal sends Ctrl-C to all processes of the group, this one too.
    # Ctrl-C is for the party, with whose end this process ends
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    output = sys.stdout.buffer

    def say(line: dict[str, Any], content: bytes = b"") -> None:
        output.write(json.dumps(line).encode() + b"\n" + content)
        # Without it a line may stay in the buffer for minutes, and the operator sees no progress.
        output.flush()

    try:
        result = _computed(sys.stdin.buffer.read(), lambda done, of: say({"share": done / of}))
        say({"size": len(result)}, result)
    except DataError as error:
        say({"error": str(error)})
    # `os._exit` skips the flush of the closed output at the end, which would print a traceback.
    except (BrokenPipeError, WireError):
        # the party has ended, and nobody reads or the job was cut off
        os._exit(1)


def _computed(job: bytes, report: Callable[[int, int], None]) -> bytes:
    # Here and not above: the parent imports this module, and must not load the library.
    from mtcd.federation.psi import PsiAnswerer, PsiAsker

    head, (ids, *parts) = unwrap(job, ("job",), 1, more=2)
    known = json.loads(ids)
    if head["job"] == REQUEST:
        asker = PsiAsker(known, report=report)
        return wrap({}, asker.key, asker.request())
    if head["job"] == SHARED:
        return json.dumps(list(PsiAsker(known, parts[0], report).shared(parts[1]))).encode()
    return PsiAnswerer(known, report).respond(parts[0])


if __name__ == "__main__":
    main()
