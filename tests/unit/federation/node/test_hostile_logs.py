"""Logs: nothing private goes in, and nobody can fill them."""

import json
import random
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from hubs import Hub, Passing, linear
from mtcd.federation.node.log import KINDS, Log
from mtcd.federation.node.rpc import OK
from mtcd.models.glm.party.block import read_block
from own_parts import model_section
from problems import MODELS, make_data
from spoiling import spoilt_envelopes, spoilt_lines, spoilt_parts

MULTINOMIAL = MODELS[7]


@pytest.mark.parametrize("alignment", ["psi", "hashed"])
def test_logs_tell_nothing_private(alignment: str, tmp_path: Path) -> None:
    data = make_data(MULTINOMIAL, 10, [2, 1, 3], seed=3)
    texts = np.array(["unwell", "cheerful", "beyond_help"])
    weights = np.random.default_rng(5).exponential(size=10)
    data = replace(
        data, labels=texts[np.unique(data.labels, return_inverse=True)[1]], weights=weights
    )
    method = {"kind": "mtcd", "tokens": 1, "hops": 3, "stepsize": 0.07}
    settings = {
        "model": model_section(MULTINOMIAL),
        "method": method,
        "stop": {"iterations": 9},
        "alignment": alignment,
    }
    some = random.Random(4)
    with Hub(tmp_path, data.clients, linear(data), network={"kind": "path"}, **settings) as hub:

        def spoil(passing: Passing) -> None:
            """So that there is much to complain of."""
            if passing.kind == "envelope":
                for wrong in spoilt_envelopes(passing.body[:-8], some, 2):
                    hub.ask(passing._replace(body=wrong))
            elif passing.kind in ("align", "prepare", "start"):
                for wrong in [*spoilt_lines(passing.body), *spoilt_parts(passing.body)]:
                    if passing.kind != "start" or wrong.count(b"agreement") == 0:
                        hub.ask(passing._replace(body=wrong))

        hub.train(spoil)
        answers = [
            hub.ask(Passing("operator", name, f"control/{kind}", b""))
            for name in hub.nodes
            for kind in ("status", "logs")
        ]
        assert all(answer is not None and answer[:1] == OK for answer in answers)
        told = b"".join(
            [*(answer or b"" for answer in answers), "\n".join(hub.shown).encode()]
        ).decode()
    told += "".join((tmp_path / "runs" / name / "log.jsonl").read_text() for name in hub.nodes)
    assert told.count("refused") > 100
    parameters = [read_block(tmp_path / "runs" / name).theta for name in data.clients]
    private = [f"id{i}" for i in range(data.samples)] + texts.tolist()
    private += [
        digits(x) for block in (*data.blocks, *parameters, weights) for x in np.ravel(block)
    ]
    private += [line for name in hub.nodes for line in secrets_of(tmp_path / "bundles" / name)]
    assert len(private) > 60
    assert [one for one in private if one in told] == []


def digits(number: float) -> str:
    """Of a number, so many that it is not by chance somewhere."""
    text = f"{abs(number):.17g}"
    assert len(text) > 8, text
    return text[:8]


def secrets_of(bundle: Path) -> list[str]:
    key = (bundle / "key.pem").read_text().splitlines()[1:-1]
    shared = bundle / "parties.key"
    return key + ([shared.read_text().strip()] if shared.exists() else [])


def test_nobody_can_fill_a_log(tmp_path: Path) -> None:
    path = tmp_path / "log.jsonl"
    log = Log("a", path)
    for i in range(20 * KINDS):
        log.refused("b", "envelope", f"it is wrong in a new way: {i}")
        log.refused("c", "envelope", "always the same")
    log.close()
    events = [json.loads(line) for line in path.read_text().splitlines()]
    assert len(events) < KINDS + 100
    assert {event["sender"] for event in events} == {"b", "c"}
    assert max(event["times"] for event in events) == 2 ** int(np.log2(20 * KINDS))


def test_what_others_say_stays_on_one_line(tmp_path: Path) -> None:
    shown: list[str] = []
    log = Log("a", tmp_path / "log.jsonl", shown.append)
    log.refused("b", "envelope", 'x"\n{"event": "ended"}\r\x1b[2J' + "y" * 10_000)
    log.close()
    lines = (tmp_path / "log.jsonl").read_text().splitlines()
    assert [json.loads(line)["event"] for line in lines] == ["refused"]
    assert len(lines[0]) < 1000
    assert shown[0].isprintable()
