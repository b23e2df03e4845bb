"""The check at the opening: what no party can check alone, because it takes two of them.

The label holder asks every other member, the server too, before samples are aligned. Who has other
settings (a bundle of another ``federation init``), or speaks another protocol, refuses. The answers
show how far clocks are apart, and which versions of packages all have. A party of an older version
of mtcd does not know the request, and counts as checked.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from time import time
from typing import Any

from mtcd.core.errors import DataError
from mtcd.core.version import VERSION
from mtcd.federation.credentials.bundle_schema import BundleConfig
from mtcd.federation.names import SERVER
from mtcd.federation.node.log import Log, tidy
from mtcd.federation.node.refusal import UnableError
from mtcd.federation.node.rpc import NOT_KNOWN
from mtcd.federation.node.rpc_client import Answers, RpcClient
from mtcd.federation.preflight import needed_packages, package_version

CHECK = "check"
OLDER = b"{}"
"""The answer that a party of a version without this check would give."""
MOST_SECONDS_APART = 300.0
"""Of two clocks: beyond it, logs and exit statuses of a federation cannot be put in order, and
certificates may fail."""
NOTED_SECONDS_APART = 30.0
LONGEST_BYTES = 10_000
MOST_PACKAGES = 50


def facts_of(config: BundleConfig) -> bytes:
    """What a member says of itself: its clock and its versions."""
    packages = {name: package_version(name) for name in needed_packages(config)}
    return json.dumps({"time": time(), "mtcd": VERSION, "packages": packages}).encode()


class OpeningCheck:
    """The check of all other members by the label holder."""

    def __init__(self, rpc_client: RpcClient, config: BundleConfig, log: Log) -> None:
        self.rpc_client, self.config, self.log = rpc_client, config, log
        self._arrived: dict[str, float] = {}

    def begin(self, body: bytes, then: Callable[[], None]) -> None:
        """Ask everybody; call ``then`` if all can take part. Otherwise an UnableError is raised in
        the loop."""
        config = self.config
        others = [name for name in config.parties if name != config.name]
        others += [SERVER] if SERVER in config.peers else []

        def answered(answers: Answers) -> None:
            for name, answer in answers.items():
                self._compare(name, answer, self._arrived[name])
            then()

        def arrived(name: str) -> None:
            self._arrived[name] = time()

        self.rpc_client.ask(CHECK, dict.fromkeys(others, body), answered, arrived, _refused)

    def _compare(self, name: str, answer: bytes, arrived: float) -> None:
        facts = _read(name, answer)
        if facts is None:
            return
        apart = facts["time"] - arrived
        if abs(apart) > MOST_SECONDS_APART:
            raise UnableError(
                name,
                f"Its clock is {_duration(abs(apart))} {'ahead of' if apart > 0 else 'behind'} "
                f"that of {self.config.name}, and {_duration(MOST_SECONDS_APART)} are allowed: set "
                "the clocks of both hosts, for example with NTP.",
            )
        if abs(apart) > NOTED_SECONDS_APART:
            self.log.say(
                "note",
                f"The clock of {name} is {_duration(abs(apart))} off that of {self.config.name}.",
            )
        self._compare_versions(name, facts["mtcd"], facts["packages"])

    def _compare_versions(self, name: str, version: str, packages: dict[str, str | None]) -> None:
        own = {
            "mtcd": VERSION,
            **{one: package_version(one) for one in needed_packages(self.config)},
        }
        theirs = {"mtcd": version, **packages}
        other = [
            f"{one} {theirs[one]} (here {own[one]})"
            for one in own
            if theirs.get(one) not in (None, own[one])
        ]
        if other:
            self.log.say(
                "note",
                f"{name} has other versions: {', '.join(other)}. Results may differ in the last "
                "digits.",
            )


def _refused(name: str, why: str) -> bytes:
    """Who does not know the request is of an older version; who refuses it otherwise cannot take
    part."""
    if NOT_KNOWN in why:
        return OLDER
    raise UnableError(name, why)


def _read(name: str, answer: bytes) -> dict[str, Any] | None:
    """The facts of a member; None if it is of an older version."""
    if answer == OLDER:
        return None
    try:
        facts: Any = json.loads(answer) if len(answer) <= LONGEST_BYTES else None
        when, version, packages = (facts[key] for key in ("time", "mtcd", "packages"))
    except (ValueError, KeyError, TypeError, RecursionError):
        raise _not_readable(name) from None
    usual = isinstance(version, str) and isinstance(packages, dict)
    number = isinstance(when, int | float) and not isinstance(when, bool) and math.isfinite(when)
    if not usual or not number or len(packages) > MOST_PACKAGES:
        raise _not_readable(name)
    known = {
        str(one): None if there is None else tidy(str(there))[:40]
        for one, there in packages.items()
    }
    return {"time": float(when), "mtcd": tidy(version)[:40], "packages": known}


def _not_readable(name: str) -> DataError:
    return DataError(
        f"{name} did not answer the check of the opening as a party does: is it of the same "
        "version of mtcd?"
    )


def _duration(seconds: float) -> str:
    """A time in words.

    >>> _duration(45), _duration(300), _duration(7200)
    ('45 s', '5 min', '2.0 h')
    """
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"
