"""The stories of the simulator: the transcripts in docs/ are what it tells, and what they tell is
right."""

import subprocess
import sys

import numpy as np
import pytest

from mtcd.protocol.token import Token
from mtcd.testing.simulator.__main__ import main
from mtcd.testing.simulator.invariants import check_lone_token, check_server
from mtcd.testing.simulator.stories import STORIES
from mtcd.testing.simulator.world import Crash, CrashingJournal, Faults, World
from project import ROOT
from recovering import waiting_party
from simulated_deliveries import PROBLEM, making_parties, server_world

FOLDER = ROOT / "docs" / "transcripts"


@pytest.mark.parametrize("name", STORIES)
def test_a_transcript_is_what_the_story_tells(name: str) -> None:
    """If it changed on purpose: ``python -m mtcd.testing.simulator NAME >
    docs/transcripts/NAME.txt``."""
    text = STORIES[name].transcript()
    assert text == (FOLDER / f"{name}.txt").read_text(encoding="utf-8")
    assert 15 <= len(text.splitlines()) <= 40
    assert "over all clients is the aggregate of" in text
    assert text.count(": yes.") == 1
    assert "processed twice: 0" in text


def test_there_are_ten_and_no_file_without_a_story() -> None:
    assert len(STORIES) == 10
    assert {path.stem for path in FOLDER.glob("*.txt")} == STORIES.keys()


def test_the_command_tells_a_story_lists_all_and_knows_what_was_meant(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main([]) == 0
    assert all(name in capsys.readouterr().out for name in [*STORIES][:1])
    assert main(["link-cut"]) == 0
    assert capsys.readouterr().out == (FOLDER / "link-cut.txt").read_text(encoding="utf-8")
    assert main(["link-cuts"]) == 2
    assert "link-cut" in capsys.readouterr().err
    command = [sys.executable, "-m", "mtcd.testing.simulator"]
    listed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert len(listed.splitlines()) == len(STORIES)


def test_the_same_seed_is_the_same_storm() -> None:
    faults = Faults(loss=0.1, duplicate=0.1, crash=0.02, cut=0.02, hang=0.02)
    worlds = [World(making_parties("average"), seed, waiting_party, faults) for seed in (1, 1, 2)]
    for world in worlds:
        for _ in range(400):
            world.step()
    contents = [
        {number: journal.content for number, journal in world.journals.items()} for world in worlds
    ]
    assert contents[0] == contents[1]
    assert worlds[0].happened == worlds[1].happened
    assert contents[0] != contents[2]


def test_invariants_notice_a_parameter_that_was_changed() -> None:
    world = server_world("average", 0)
    while len(world.reports) < 3:
        world.step()
    check_server(world, PROBLEM)
    record = world.journals[2].last()
    record["party"]["theta"][0][:] += 1e-6
    record["party"]["combined"][0][:] += 1e-6
    world.journals[2].crashes = lambda: False
    world.journals[2].commit(record)
    with pytest.raises(AssertionError):
        check_server(world, PROBLEM)


def test_invariants_notice_a_second_token() -> None:
    from lone_worlds import lone_world

    world = lone_world("cycle", 0, Faults())
    for _ in range(10):
        world.step()
    check_lone_token(world, PROBLEM)
    holder = next(k for k in world.numbers if k not in _receivers(world))
    world.parties[holder].send_control((holder + 1) % 5, Token(0, 0, 3, np.zeros(12), 0.0))
    world.parties[holder].commit()
    with pytest.raises(AssertionError, match="2 tokens"):
        check_lone_token(world, PROBLEM)


def _receivers(world: World) -> set[int]:
    return {envelope.to for party in world.parties.values() for envelope in party.unacknowledged()}


@pytest.mark.parametrize(("checks", "kept"), [([True], None), ([False, True], "value")])
def test_a_journal_crashes_before_or_after_it_writes(checks: list[bool], kept: str | None) -> None:
    journal, left = CrashingJournal(), iter(checks)
    journal.crashes = lambda: next(left, False)
    with pytest.raises(Crash):
        journal.commit("value")
    assert journal.last() == kept
    copied = journal.copy()
    copied.commit("other")
    assert journal.last() == kept
