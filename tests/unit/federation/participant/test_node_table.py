"""The settings that the label holder sends, as a participant checks them."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from mtcd.core.errors import WireError
from mtcd.federation.participant.keeping import keep_metrics
from mtcd.federation.participant.node_table import ParticipantTable, summary_of
from mtcd.methods.mtcd.mtcd import STCD
from mtcd.protocol.codec.envelopes import End
from mtcd.protocol.ledger.costs import Costs
from mtcd.protocol.ledger.ledger import Ledger
from mtcd.training.divergence import DIVERGED

SOUND: dict[str, Any] = {"samples": 7, "stepsize": 0.5, "notes": ["one"], "own": 1}
MOST = 2**20 // 8
"""Labels, a number of eight bytes for each sample, fit into a message of one megabyte."""


def checked(**changes: Any) -> dict[str, Any]:
    table: Any = object.__new__(ParticipantTable)
    table.config = SimpleNamespace(limits=SimpleNamespace(message_mb=1))
    found: dict[str, Any] = table.checked({**SOUND, **changes}, "own")
    return found


@pytest.mark.parametrize("samples", [1, MOST])
def test_sound_settings_are_returned_as_they_came(samples: int) -> None:
    assert checked(samples=samples) == {**SOUND, "samples": samples}
    assert checked(stepsize=5e-324, notes=[])["stepsize"] == 5e-324


@pytest.mark.parametrize(
    ("changes", "why"),
    [
        *(({"samples": bad}, "samples is out of range") for bad in (0, MOST + 1, True, 1.0, "7")),
        *(
            ({"stepsize": bad}, "stepsize is not a finite number above 0")
            for bad in (0.0, -0.5, 1, float("inf"), float("nan"), None)
        ),
        *(({"notes": bad}, "notes are not a list of texts") for bad in ("one", [1], None)),
        ({"more": 1}, "settings are not those of a run"),
    ],
)
def test_settings_that_make_no_sense_are_refused(changes: dict[str, Any], why: str) -> None:
    with pytest.raises(WireError, match=why):
        checked(**changes)


@pytest.mark.parametrize(("final", "objective"), [(True, 0.25), (False, None)])
def test_a_summary_has_what_was_measured_at_the_end(
    final: bool, objective: float | None, tmp_path: Path
) -> None:
    keep_metrics(tmp_path, {"train_auc": 0.75})
    end = End("iterations", 2, 7)
    reliable: Any = SimpleNamespace(ended=end, ledger=Ledger())
    watch: Any = SimpleNamespace(
        facts=lambda: {"objective": 0.25}, final=final, seconds=lambda: 1.5
    )
    config: Any = SimpleNamespace(federation="clinics", name="a")
    given = (tmp_path, config, STCD(stepsize=0.5), Costs(), reliable, watch, ["note"])
    found = summary_of(*given, "Not known.")
    assert (found.status, found.iterations, found.syncs) == ("iterations", 7, 2)
    assert (found.seconds, found.objective) == (1.5, objective)
    assert (found.notes, found.unjudged) == (("note",), "Not known.")
    assert (found.stepsize, found.metrics) == (0.5, {"train_auc": 0.75})
    assert found.ledger is reliable.ledger
    reliable.ended = End(DIVERGED, 2, 7)
    assert summary_of(*given, "").metrics == {}
