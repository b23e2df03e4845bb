"""Private set intersection in a process of its own: the party answers meanwhile, and both end
together."""

import io
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from threading import Thread
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("private_set_intersection")

from mtcd.core.errors import DataError, MtcdError
from mtcd.federation import psi_process
from mtcd.federation.node.chunks import unwrap, wrap
from mtcd.federation.psi import PsiAnswerer, PsiAsker
from mtcd.federation.psi_process import AlignmentProgress, answerer_apart, asker_apart
from waiting import until

MANY = [f"patient {i}" for i in range(50_000)]  # about 20 seconds


def children(pid: int) -> list[int]:
    """The processes that a process has started."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:  # it has ended
            continue
        if int(fields[1]) == pid and fields[0] != "Z":
            found.append(int(stat.parent.name))
    return found


def test_a_process_apart_computes_the_same_set() -> None:
    ours, theirs = ["a", "b", "c ü"], ["c ü", "d", "a"]
    progress = AlignmentProgress()
    asker = asker_apart("psi", ours, None, progress)
    response = PsiAnswerer(theirs).respond(asker.request())
    assert asker.shared(response) == {"a", "c ü"}
    other = PsiAsker(ours)
    assert other.shared(answerer_apart("psi", theirs, None, progress).respond(other.request())) == {
        "a",
        "c ü",
    }
    assert progress.facts() is None


def test_a_bad_message_is_refused_as_without_a_process() -> None:
    asker, answerer = (
        asker_apart("psi", ["a"], None, AlignmentProgress()),
        answerer_apart("psi", ["a"], None, AlignmentProgress()),
    )
    asker.request()
    for compute in (asker.shared, answerer.respond):
        with pytest.raises(DataError, match="private set intersection"):
            compute(b"nonsense")


def test_progress_is_reported_and_a_killed_process_is_a_clear_error() -> None:
    progress, errors = AlignmentProgress(), []

    def respond() -> None:
        try:
            answerer_apart("psi", MANY, None, progress).respond(PsiAsker(["a"]).request())
        except MtcdError as error:
            errors.append(str(error))

    before = set(children(os.getpid()))
    thread = Thread(target=respond, daemon=True)
    thread.start()
    assert until(lambda: progress.share > 0.001)
    facts: Any = progress.facts()
    assert facts["step"] == "blinding ids"
    assert 0 < facts["share"] < 1
    (child,) = set(children(os.getpid())) - before
    os.kill(child, signal.SIGKILL)
    thread.join()
    assert "killed by signal 9" in errors[0]
    assert "memory" in errors[0]
    assert progress.facts() is None


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_the_process_ends_with_its_party(how: signal.Signals) -> None:
    script = (
        "from mtcd.federation.psi_process import AlignmentProgress, asker_apart\n"
        "asker_apart('psi', [str(i) for i in range(50_000)], None, AlignmentProgress()).request()"
    )
    party = subprocess.Popen([sys.executable, "-c", script], stderr=subprocess.DEVNULL)
    try:
        assert until(lambda: children(party.pid))
        (child,) = children(party.pid)
        party.send_signal(how)
        assert until(lambda: not Path(f"/proc/{child}").exists() or _is_zombie(child))
    finally:
        party.kill()
        party.wait()


def _is_zombie(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


@pytest.mark.parametrize(
    ("code", "how"),
    [(-9, "was killed by signal 9"), (0, "ended with exit code 0"), (1, "ended with exit code 1")],
)
def test_a_process_that_ended_without_a_result_says_how(code: int, how: str) -> None:
    assert f"its process {how}, perhaps" in psi_process._ended_early(code)


def test_the_three_jobs_of_a_process_find_the_shared_ids() -> None:
    reported: list[tuple[int, int]] = []

    def job(name: str, ids: list[str], *parts: bytes) -> bytes:
        content = wrap({"job": name}, json.dumps(ids).encode(), *parts)
        return psi_process._computed(content, lambda done, of: reported.append((done, of)))

    _, (key, request) = unwrap(job(psi_process.REQUEST, ["a", "b"]), (), 2)
    assert reported == [(0, 2), (2, 2)]
    reported.clear()
    response = job(psi_process.RESPOND, ["b", "c", "d"], request)
    assert reported == [(0, 5), (2, 5), (2, 5), (5, 5)]
    reported.clear()
    assert json.loads(job(psi_process.SHARED, ["a", "b"], key, response)) == ["b"]
    assert reported == [(0, 2), (2, 2)]


@pytest.mark.parametrize("ids", [["a"], []])
def test_a_process_says_how_far_it_is_and_then_its_result_or_its_error(
    ids: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    job = wrap({"job": psi_process.RESPOND}, json.dumps(["b"]).encode(), PsiAsker(ids).request())
    written = io.BytesIO()
    ignored: list[Any] = []
    monkeypatch.setattr(psi_process.signal, "signal", lambda *given: ignored.append(given))
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(job)))
    monkeypatch.setattr(sys, "stdout", SimpleNamespace(buffer=written))
    psi_process.main()
    monkeypatch.undo()
    assert ignored == [(signal.SIGINT, signal.SIG_IGN)]
    progress = AlignmentProgress()
    written.seek(0)
    if not ids:
        with pytest.raises(DataError, match="A request of private set intersection is empty"):
            psi_process._read(written, progress)
        return
    response = psi_process._read(written, progress)
    assert response
    assert progress.share == 1.0


@pytest.mark.parametrize(
    ("lines", "result"),
    [
        (b'{"share": 0.5}\n{"size": 3}\nabc', b"abc"),
        (b'{"size": 3}\nab', None),
        (b'{"share": 0.5}\n', None),
        (b'{"share": 0.5}\n{"si', None),
        (b"", None),
    ],
)
def test_a_result_that_was_cut_off_is_none(lines: bytes, result: bytes | None) -> None:
    progress = AlignmentProgress()
    assert psi_process._read(io.BytesIO(lines), progress) == result
    assert progress.share == (0.5 if b"share" in lines else 0.0)
