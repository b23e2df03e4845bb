"""Bytes on the wire and in journals change only together with a version number: see
``golden.py``."""

import json
from dataclasses import fields

import pytest

pytest.importorskip("msgpack")

from golden import FILE, PAYLOADS, current, versions
from mtcd.protocol.codec.payloads import SCHEMAS, Payload, payload
from mtcd.protocol.codec.records import pack, unpack
from mtcd.protocol.codec.stored import STORED

RECORDED = json.loads(FILE.read_text())
COUNT_UP = "count up PROTOCOL, FORMAT or MAGIC, then run python tests/support/golden.py"


def test_the_versions_are_those_of_the_recorded_bytes() -> None:
    assert versions() == RECORDED["versions"], (
        "run python tests/support/golden.py after counting up a version"
    )


@pytest.mark.parametrize("name", current())
def test_bytes_do_not_change_without_a_new_version(name: str) -> None:
    assert current()[name] == RECORDED["bytes"].get(name), COUNT_UP


def test_every_payload_class_is_recorded() -> None:
    ours = {kind for kind in SCHEMAS if kind.__module__.startswith("mtcd.")}
    assert ours == {type(one) for one in PAYLOADS}


def test_payloads_of_different_classes_are_never_equal() -> None:
    signals = [one for one in PAYLOADS if getattr(one, "t", None) == 2 and len(fields(one)) == 1]
    assert len(signals) >= 2
    assert len(set(signals)) == len(signals)


def test_what_a_journal_holds_comes_back_as_what_it_was() -> None:
    back = unpack(pack(list(PAYLOADS)))
    assert [type(one) for one in back] == [type(one) for one in PAYLOADS]
    assert pack(back) == pack(list(PAYLOADS))


def test_a_number_is_given_to_one_class_only() -> None:
    class Other(Payload):
        pass

    with pytest.raises(TypeError, match="has the number 5, which is that of Share"):
        payload(5, "s>c")(Other)
    assert Other not in SCHEMAS
    assert "Other" not in STORED


def test_a_class_without_a_schema_is_refused() -> None:
    with pytest.raises(TypeError, match="Other is not a dataclass"):
        payload(9999, "s>c")(type("Other", (Payload,), {}))
