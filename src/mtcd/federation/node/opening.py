"""The opening of a run: the parties find their common samples, receive the labels, and agree on the
settings.

The label holder leads. It sends these requests to every other party, and retries until each has
answered:

- ``check``: what takes two to check, such as clocks, settings of another
  ``federation init`` and versions of packages; the server is asked too, and a party of an older
  version, which does not know the request, counts as checked;
- ``align``: find the common ids (see ``aligning.py``);
- ``prepare``: announces the common samples; the answer holds what resolves the step size. If
  samples or classes have weights, it depends on them, and the labels come with the request;
- ``start``: the id of the run, the settings and the labels. The server gets sizes only, and the
  labels if the federation file allows it.

Each party writes the agreement into its run folder before training, and reads it from there after a
restart. A party that restarts before the agreement is simply asked again. One that finds that it
cannot take part tells all others, and ends (see ``refusal.py``).
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from time import time
from typing import Any, Protocol

from mtcd.core.errors import ConfigError, DataError, MtcdError, NotInstalledError, WireError
from mtcd.core.received import is_id
from mtcd.core.version import VERSION
from mtcd.federation.credentials.bundle import Bundle
from mtcd.federation.credentials.bundle_schema import BundleConfig
from mtcd.federation.names import SERVER
from mtcd.federation.node.aligning import AlignmentFollower, AlignmentLeader, Samples, agreed_rows
from mtcd.federation.node.chunks import unwrap, wrap
from mtcd.federation.node.link import IncomingRequest
from mtcd.federation.node.log import Log, tidy
from mtcd.federation.node.refusal import UnableError
from mtcd.federation.node.rpc import NOT_KNOWN, Answers, Rpc, RpcClient
from mtcd.federation.participant.kinds import party_privacy
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
LATEST_SECONDS = 253_402_300_800.0
"""A clock is before the year 10000."""


def facts_of(config: BundleConfig) -> bytes:
    """What a member says of itself: its clock and its versions."""
    # Asked at each check: a package may be updated while this process waits.
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
        if SERVER in config.peers:
            others.append(SERVER)

        def answered(answers: Answers) -> None:
            for name, answer in answers.items():
                self._compare(name, answer, self._arrived[name])
            then()

        def arrived(name: str) -> None:
            # The moment of arrival: the comparison comes when all are there.
            self._arrived[name] = time()

        self.rpc_client.ask(CHECK, dict.fromkeys(others, body), answered, arrived, _refused)

    def _compare(self, name: str, answer: bytes, arrived: float) -> None:
        facts = _read(name, answer)
        if facts is None:
            return
        apart = facts["time"] - arrived
        if abs(apart) > MOST_SECONDS_APART:
            side = "behind"
            if apart > 0:
                side = "ahead of"
            raise UnableError(
                name,
                f"Its clock is {_duration(abs(apart))} {side} that of {self.config.name}, and "
                f"{_duration(MOST_SECONDS_APART)} are allowed: set the clocks of both hosts, for "
                "example with NTP.",
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
        other = []
        for one, here in own.items():
            there = theirs.get(one)
            if there not in (None, here):
                other.append(f"{one} {there} (here {here})")
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
    facts: Any = None
    try:
        if len(answer) <= LONGEST_BYTES:
            facts = json.loads(answer)
        when, version, packages = (facts[key] for key in ("time", "mtcd", "packages"))
    except (ValueError, KeyError, TypeError, RecursionError):
        raise _not_readable(name) from None
    usual = isinstance(version, str) and isinstance(packages, dict)
    # whole numbers of JSON may be too large for a float
    number = type(when) in (int, float) and 0 <= when < LATEST_SECONDS
    if not usual or not number or len(packages) > MOST_PACKAGES:
        raise _not_readable(name)
    known: dict[str, str | None] = {}
    for one, there in packages.items():
        known[str(one)] = None
        if there is not None:
            known[str(one)] = tidy(str(there))[:40]
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
    if seconds < 7200:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"


PURPOSE = "training"
OWN_ERRORS = (DataError, ConfigError, NotInstalledError)
"""What a party raises on its own table, settings and packages; messages that are not valid raise a
WireError."""
WHICH = "which"


class OpeningPart(Samples, Protocol):
    """A participant during the opening."""

    def labels_for_facts(self, rows: Sequence[int]) -> bytes:
        """At the label holder: the labels and weights, if the facts depend on them, otherwise
        nothing."""

    def facts(self, rows: Sequence[int], labels: bytes = b"") -> bytes:
        """The facts about this party's block from which the label holder resolves the settings."""

    def resolve(
        self, rows: Sequence[int], facts: Mapping[str, bytes]
    ) -> tuple[dict[str, Any], bytes]:
        """At the label holder: the settings for all parties, and the labels."""


@dataclass(frozen=True)
class Agreed:
    """The agreement from which training starts."""

    run: str
    settings: dict[str, Any]
    labels: bytes
    announcement: bytes

    def packed(self) -> bytes:
        """The bytes for the followers, and for the run folder, from which a restarted party goes
        on."""
        return wrap({"run": self.run, "told": self.settings}, self.labels, self.announcement)

    @staticmethod
    def unpacked(data: bytes) -> Agreed:
        """Read the bytes of a leader; a ``WireError`` says which part is not as a leader writes
        it."""
        head, (labels, announcement) = unwrap(data, ("run", "told"), 2)
        run = head["run"]
        if not is_id(run):
            raise WireError("run", "is not the id of a run")
        if not isinstance(head["told"], dict):
            raise WireError("settings", "are not those of a run")
        return Agreed(run, head["told"], labels, announcement)


class OpeningFollower:
    """A follower of the opening: answers the leader. ``start`` is called once, with the
    agreement."""

    def __init__(
        self,
        rpc: Rpc,
        bundle: Bundle,
        part: OpeningPart | None,
        log: Log,
        start: Callable[[Agreed], Any],
    ) -> None:
        self.rpc, self.bundle, self.part, self.start = rpc, bundle, part, start
        self.agreed: Agreed | None = None
        self._confirmed: str | None = None
        """The run that the leader has confirmed."""
        self.alignment = AlignmentFollower(
            rpc, bundle, bundle.config.labels.held_by, PURPOSE, part, log
        )
        rpc.on(CHECK, self._answer_check)
        rpc.on("start", self._start)
        if part is not None:
            rpc.on("prepare", self._prepare)

    def _answer_check(self, request: IncomingRequest) -> None:
        self.alignment.read(request, 0)
        request.answer(facts_of(self.bundle.config))

    def _prepare(self, request: IncomingRequest) -> None:
        _, (announcement, *labels) = self.alignment.read(request, 1, more=1)
        assert self.part is not None
        rows = self.alignment.rows(announcement)
        try:
            facts = self.part.facts(rows, *labels)
        except OWN_ERRORS as error:
            self._give_up(request, error)
            return
        request.answer(facts)

    def _start(self, request: IncomingRequest) -> None:
        _, (packed,) = self.alignment.read(request, 1)
        agreed = Agreed.unpacked(packed)
        # A party of a run that goes on must not be drawn into another one.
        if self.agreed is not None and self.agreed.run != agreed.run:
            raise ConfigError(
                f"{self.bundle.config.name} is in another run: to take part in a new run, start it "
                "with a new folder (--out)."
            )
        if not request.direct and agreed.run not in (
            self._confirmed,
            self.agreed and self.agreed.run,
        ):
            self._confirm(agreed.run)
            request.drop()  # the leader retries
            return
        if self.agreed is None:
            self._check(agreed)
            try:
                self.start(agreed)
            except OWN_ERRORS as error:
                self._give_up(request, error)
                return
            self.agreed = agreed
        request.answer()

    def _give_up(self, request: IncomingRequest, error: MtcdError) -> None:
        """End this party by an error on its own data, settings or packages: the leader would ask
        again for ever."""
        # Dropped, not refused: the reason goes to all parties, through ``refusal.py``.
        request.drop()
        self.rpc.loop.call(lambda: _raise(error))

    def _confirm(self, run: str) -> None:
        """Ask the leader for its run: a relayed request may be a replay, but the answer to this one
        is fresh."""

        def answered(answer: bytes | None, why: str) -> None:
            if answer == run.encode():
                self._confirmed = run

        self.rpc.ask(self.alignment.leader, WHICH, run.encode(), answered)

    def _check(self, agreed: Agreed) -> None:
        """Check that parties get samples and labels; the server gets no samples, and labels only if
        it may."""
        config = self.bundle.config
        may_know = party_privacy(config.privacy).shares_labels and (
            self.part is not None or SERVER in config.labels.shared_with
        )
        # Both ways: labels that come to a party that may not know them are refused, too.
        if bool(agreed.labels) != may_know:
            raise WireError("labels", "are missing, or are not for this party")
        if self.part is not None:
            self.alignment.rows(agreed.announcement)
        elif agreed.announcement:
            raise WireError("announcement", "of the common samples is not for the server")


class OpeningLeader:
    """The leader of the opening: the label holder.

    ``start`` prepares the own party, once, and returns the party that sends the first message, if
    it is one party (the opener). Then the others are started, the opener last, so that no party
    trains before all are ready; ``go`` is called before the opener starts.
    """

    def __init__(
        self,
        rpc_client: RpcClient,
        bundle: Bundle,
        part: OpeningPart,
        log: Log,
        start: Callable[[Agreed], str | None],
        go: Callable[[], None],
        confirmed: set[str],
    ) -> None:
        self.rpc_client, self.bundle, self.part, self.start, self.go = (
            rpc_client,
            bundle,
            part,
            start,
            go,
        )
        self.leader = AlignmentLeader(rpc_client, bundle, PURPOSE, part, log)
        self.check = OpeningCheck(rpc_client, bundle.config, log)
        self.confirmed = confirmed
        """The parties that have confirmed the start: one that lost its folder since then must not
        start again."""

    def lead(self) -> None:
        """Begin with the check of all others, then with the alignment of samples."""
        self.check.begin(self.leader.wrapped(), lambda: self.leader.align(self._prepare))

    def start_others(self, agreed: Agreed, opener: str | None) -> None:
        """Start all parties that have not confirmed the start."""
        # From now on: a follower asks for the run before it trusts a relayed start.
        self.rpc_client.rpc.on(WHICH, lambda request: request.answer(agreed.run.encode()))

        def ready(answers: Answers) -> None:
            self.go()
            if opener == SERVER:
                # The settings only; the labels if the file of the federation lets it know them.
                labels = b""
                if SERVER in self.bundle.config.labels.shared_with:
                    labels = agreed.labels
                self._request_start([SERVER], Agreed(agreed.run, agreed.settings, labels, b""))
            elif opener in self.leader.others:
                self._request_start([opener], agreed)

        self._request_start([name for name in self.leader.others if name != opener], agreed, ready)

    def _request_start(
        self,
        names: Sequence[str],
        agreed: Agreed,
        then: Callable[[Answers], None] = lambda answers: None,
    ) -> None:
        body = self.leader.wrapped(agreed.packed())
        missing = [name for name in names if name not in self.confirmed]
        self.rpc_client.ask("start", dict.fromkeys(missing, body), then, self.confirmed.add)

    def _prepare(self, announcement: bytes) -> None:
        rows = agreed_rows(announcement, self.part)
        early = self.part.labels_for_facts(rows)
        # first: its errors end the opening with their reason
        own = {self.bundle.config.name: self.part.facts(rows, early)}

        def answered(answers: Answers) -> None:
            settings, labels = self.part.resolve(rows, {**own, **answers})
            # Random: a replayed start of an earlier run has another number.
            agreed = Agreed(secrets.token_hex(8), settings, labels, announcement)
            self.start_others(agreed, self.start(agreed))

        parts = [announcement]
        if early:
            parts.append(early)
        body = self.leader.wrapped(*parts)
        bodies = dict.fromkeys(self.leader.others, body)
        self.rpc_client.ask("prepare", bodies, answered)


def _raise(error: MtcdError) -> None:
    raise error
