"""What a run needs of one party, checked before anything is trained: packages, files, table,
addresses, clock.

``preflight`` checks everything, and returns what it found as values: a command shows them, and a
program that runs for long may call it again before every run. It prints nothing, writes nothing,
and sends nothing to other parties. ``examine`` is the part of it that a party does when it starts:
what it has read is not read again. What takes two to check (clocks, versions at other parties) is
compared at the opening of the run: ``node/opening.py``.
"""

from __future__ import annotations

import re
import socket
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, requires, version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from mtcd.core.errors import ConfigError, DataError, MtcdError, NotInstalledError
from mtcd.core.optional import EXTRAS, INSTALL_WHERE, USERS, find, install
from mtcd.core.version import VERSION
from mtcd.federation.credentials.bundle import Bundle, read_bundle_without_code, with_code
from mtcd.federation.credentials.bundle_schema import BundleConfig
from mtcd.federation.credentials.credentials import expired_peers
from mtcd.federation.listening import runs_already, why_not_listening
from mtcd.federation.names import Address, parse_address
from mtcd.federation.participant.kinds import participant_of, party_kind, party_privacy
from mtcd.federation.participant.table import (
    ColumnsError,
    LabelsError,
    LossError,
    PartyTable,
    own_table,
)
from mtcd.federation.transport import connects_to

PACKAGES, CERTIFICATES, SETTINGS = "packages", "certificates", "settings"
TABLE, COLUMNS, LABELS = "table", "columns", "labels"
ADDRESSES, CLOCK = "addresses", "clock"
MET, NOTE, FAILED = "met", "note", "failed"
CONNECTION_SECONDS = 2.0
WRONG_LOSS = "The loss, which is a plug-in, contradicts itself as it is installed there."
NO_CODE = "The network code that it was started with cannot be used."
ELSEWHERE = "The details are on its own screen."
"""Errors about tables name columns, and may show values: others are told the kind of the problem
only."""
APART = frozenset({"private_set_intersection"})
"""Packages that a process of its own imports: here it is enough that they are installed."""
DISTRIBUTIONS = {
    "private_set_intersection": "openmined-psi",
    "google": "protobuf",
    "sklearn": "scikit-learn",
}
"""The names under which packages are installed, where they are not those under which they are
imported."""


@dataclass(frozen=True)
class Finding:
    """What was found about one requirement of a run."""

    requirement: str
    """``packages``, ``certificates``, ``settings``, ``table``, ``columns``, ``labels``,
    ``addresses`` or ``clock``."""
    level: str
    """``met``; ``note``: worth knowing, but no obstacle; ``failed``: the party cannot take part."""
    sentence: str
    """For the person at this party; it may name columns and values."""
    told: str = ""
    """For the other parties: of a failure, without anything that is private."""
    error: MtcdError | None = field(default=None, compare=False)
    """The error that a failure was found by."""


@dataclass(frozen=True)
class Examined:
    """The findings on one party and, if nothing failed, its participant, ready to train, and the
    bundle with its code."""

    findings: tuple[Finding, ...]
    participant: Any = None
    bundle: Bundle | None = None

    @property
    def failures(self) -> tuple[Finding, ...]:
        """What keeps the party from taking part."""
        return tuple(one for one in self.findings if one.level == FAILED)


def preflight(
    folder: Path,
    given: Mapping[str, Any] | None = None,
    code: Sequence[Path] = (),
    agreed: Sequence[str] = (),
    extra_packages: Iterable[str] = (),
    seconds: float = CONNECTION_SECONDS,
) -> list[Finding]:
    """Check everything that a run needs of the party whose bundle is in a folder.

    ``given`` overrides the ``data`` section of the bundle, as the options of ``mtcd party`` do
    (data, key, columns, label, prepare, weights); ``code`` and ``agreed`` are those of
    ``read_bundle``; ``extra_packages`` are needed besides those of the run; ``seconds`` is how long
    a peer may take to accept a connection. Nothing is raised for bad input: every problem is a
    finding.
    """
    try:
        bundle = read_bundle_without_code(folder)
    except MtcdError as error:
        return [Finding(CERTIFICATES, FAILED, str(error), "Its bundle cannot be used.", error)]
    found = [certificate_finding(bundle), clock_finding(bundle)]
    found += examine(bundle, given or {}, code, agreed, extra_packages).findings
    return found + peer_findings(bundle, seconds)


def examine(
    bundle: Bundle,
    given: Mapping[str, Any],
    code: Sequence[Path] = (),
    agreed: Sequence[str] = (),
    extra_packages: Iterable[str] = (),
) -> Examined:
    """Check the own address, packages, code, table, columns, labels and settings: what needs nobody
    else.

    The arguments are those of ``preflight``; the bundle may be without its code.
    """
    config = bundle.config
    # Nothing is read before the packages are known to be there: reading may need them.
    found = listening_findings(bundle)
    found += package_findings(needed_packages(config, extra_packages))
    try:
        bundle = with_code(bundle, code, agreed)
    except MtcdError as error:
        return Examined(
            (*found, Finding(SETTINGS, FAILED, str(error), f"{NO_CODE} {ELSEWHERE}", error))
        )
    # All findings up to here are returned with the first that failed, as a person would rather mend
    # two things than start twice.
    table: PartyTable | None = None
    if not config.is_server:
        try:
            table = own_table(config, bundle.folder, **given)
        except MtcdError as error:
            return Examined((*found, table_failure(error)))
        found += _table_findings(table)
    # the participant would fail on the same package, and name only one
    if any(one.level == FAILED for one in found):
        return Examined(tuple(found))
    try:
        participant = participant_of(bundle, table)
    except MtcdError as error:
        return Examined((*found, _participant_failure(error)))
    summary = f"{config.method.kind}, model {_kind(config)}, alignment {config.alignment}."
    return Examined((*found, Finding(SETTINGS, MET, summary)), participant, bundle)


# Packages


def needed_packages(config: BundleConfig, more: Iterable[str] = ()) -> tuple[str, ...]:
    """The packages, by the names under which they are imported, that a run needs at the owner of a
    bundle."""
    needed = ["cryptography", "msgpack"]
    if config.alignment == "psi" and not config.is_server:
        needed.append("private_set_intersection")
    needed += party_privacy(config.privacy).packages()
    needed += party_kind(config.model).packages(config)
    # Two features may name the same package. A dictionary keeps the order of the first mention.
    return tuple(dict.fromkeys([*needed, *more]))


def package_findings(needed: Iterable[str]) -> list[Finding]:
    """Whether each package is installed, can be loaded, and has a version that this mtcd works
    with."""
    found: list[Finding] = []
    known = [f"mtcd {VERSION}"]
    for name in needed:
        problem = _package_problem(name)
        if problem is None:
            known.append(f"{name} {package_version(name) or 'of an unknown version'}")
        else:
            found.append(Finding(PACKAGES, FAILED, str(problem), str(problem), problem))
    return found or [Finding(PACKAGES, MET, f"{', '.join(known)}.")]


def package_version(name: str) -> str | None:
    """The installed version of a package, by the name under which it is imported; None if that is
    not known."""
    try:
        return version(DISTRIBUTIONS.get(name, name))
    except PackageNotFoundError:
        return None


def _package_problem(name: str) -> NotInstalledError | None:
    extra = EXTRAS[name]
    todo = f"To install it, {INSTALL_WHERE}: {install(extra)}"
    try:
        if name in APART:
            if find_spec(name) is None:
                return NotInstalledError(
                    f"{USERS[extra]} need {name}, which is not installed. {todo}"
                )
        else:
            find(name)
    except NotInstalledError as error:
        return error
    except Exception as error:  # a broken installation raises anything
        why = " ".join(str(error).split())[:200]
        return NotInstalledError(f"{name} is installed, but cannot be loaded ({why}). {todo}")
    there, allowed = package_version(name), _allowed_versions(name, extra)
    if there is None or fits_version(there, allowed):
        return None
    return NotInstalledError(
        f"{name} {there} is installed, but this mtcd works with {allowed}. {todo}"
    )


def _allowed_versions(name: str, extra: str) -> str:
    """The versions of a package that an extra of this mtcd allows, such as ``>=0.3.18,<0.4``; "" if
    any."""
    # 'sklearn' is imported, 'scikit-learn' installed; '_' and '-' are the same in such names.
    distribution = DISTRIBUTIONS.get(name, name).replace("_", "-")
    try:
        listed = requires("mtcd") or []
    except PackageNotFoundError:  # mtcd runs from its source
        return ""
    for one in listed:
        wanted, _, condition = one.partition(";")
        parts = re.fullmatch(r"\s*([A-Za-z0-9._-]+)\s*\(?([^()\[\]]*)\)?\s*", wanted)
        same = parts is not None and parts[1].replace("_", "-").lower() == distribution.lower()
        if same and parts is not None and re.search(rf"extra\s*==\s*['\"]{extra}['\"]", condition):
            return parts[2].replace(" ", "")
    return ""


def fits_version(there: str, allowed: str) -> bool:
    """Whether a version is one of those that are allowed. What cannot be compared counts as one.

    >>> fits_version("0.3.18", ">=0.3.18,<0.4"), fits_version("0.4.1", ">=0.3.18,<0.4"), fits_version("2.13.0+cpu", "")
    (True, False, True)
    """
    own = _numbers(there)
    # Only plain comparisons: the bounds are those of this package's own pyproject.toml.
    for one in filter(None, allowed.split(",")):
        parts = re.fullmatch(r"(>=|<=|<|>|==)([0-9.]+)", one.strip())
        if parts is None or not own:
            continue
        bound = _numbers(parts[2])
        # Padded with zeros: 1.2 and 1.2.0 are the same version.
        size = max(len(own), len(bound))
        left, right = own + (0,) * (size - len(own)), bound + (0,) * (size - len(bound))
        fits = {
            ">=": left >= right,
            "<=": left <= right,
            "<": left < right,
            ">": left > right,
            "==": left == right,
        }
        if not fits[parts[1]]:
            return False
    return True


def _numbers(text: str) -> tuple[int, ...]:
    found = re.match(r"[0-9]+(?:\.[0-9]+)*", text)
    return () if found is None else tuple(int(part) for part in found[0].split("."))


# Table and labels


def table_failure(error: MtcdError) -> Finding:
    """A finding on a table that cannot be used."""
    # The order matters: the special errors are subclasses of DataError and ConfigError.
    if isinstance(error, NotInstalledError):
        return Finding(PACKAGES, FAILED, str(error), str(error), error)
    if isinstance(error, LabelsError):
        return Finding(
            LABELS, FAILED, str(error), f"Its labels or weights cannot be used. {ELSEWHERE}", error
        )
    if isinstance(error, ColumnsError):
        return Finding(
            COLUMNS,
            FAILED,
            str(error),
            f"The columns of its table cannot be used. {ELSEWHERE}",
            error,
        )
    if isinstance(error, LossError):
        told = f"{WRONG_LOSS} {ELSEWHERE}"
        return Finding(SETTINGS, FAILED, str(error), told, error)
    if isinstance(error, ConfigError):
        return Finding(
            SETTINGS, FAILED, str(error), f"Its settings cannot be used. {ELSEWHERE}", error
        )
    return Finding(TABLE, FAILED, str(error), f"Its table cannot be read. {ELSEWHERE}", error)


def _participant_failure(error: MtcdError) -> Finding:
    """A finding on a party whose table was read: labels do not fit the model, or settings and code
    cannot be used."""
    if isinstance(error, DataError):
        return Finding(
            LABELS, FAILED, str(error), f"Its labels do not fit the model. {ELSEWHERE}", error
        )
    return table_failure(error)


def _table_findings(table: PartyTable) -> list[Finding]:
    found = [
        Finding(TABLE, MET, f"{table.path}: {_count(table.rows, 'row')}."),
        Finding(COLUMNS, MET, f"{_count(len(table.columns), 'column')} to train on."),
    ]
    if table.labels is not None:
        weights = "" if table.weights is None else ", with weights"
        found.append(Finding(LABELS, MET, f"{_count(len(table.labels), 'label')}{weights}."))
    return found + [Finding(TABLE, NOTE, note) for note in table.notes]


def _count(count: int, word: str) -> str:
    return f"{count:,} {word}{'' if count == 1 else 's'}"


def _kind(config: BundleConfig) -> str:
    return str(getattr(config.model, "kind", None) or "split")


# Certificates and the clock


def certificate_finding(bundle: Bundle) -> Finding:
    """That the certificate of a bundle, which was checked when it was read, is valid, and until
    when."""
    return Finding(
        CERTIFICATES,
        MET,
        f"The certificate of {bundle.config.name!r} is valid until {bundle.until:%Y-%m-%d}.",
    )


def clock_finding(bundle: Bundle) -> Finding:
    """The clock of this host, as far as it can be checked alone: with other clocks it is compared
    at the opening."""
    now = datetime.now(UTC)
    return Finding(
        CLOCK,
        MET,
        f"{now:%Y-%m-%d %H:%M:%S} UTC; it is compared with the clocks of others at the opening.",
    )


# Addresses


def listening_findings(bundle: Bundle) -> list[Finding]:
    """Whether this party can listen at its address; nothing for one that only dials out."""
    where = bundle.config.listen or bundle.config.address
    if where is None:
        return []
    place = parse_address(where, listening=True)
    why = why_not_listening(place)
    if why is None:
        return [Finding(ADDRESSES, MET, f"Can listen on {place}.")]

    told = f"It cannot listen at its address ({why})."
    if runs_already(bundle):
        sentence = (
            f"Another process of this party is running and listens on {place}: stop it first."
        )
    else:
        sentence = (
            f"Cannot listen on {place} ({why}): stop the other program that uses the port, or "
            "check that the address is one of this host."
        )
    return [Finding(ADDRESSES, FAILED, sentence, told, MtcdError(sentence))]


def peer_findings(bundle: Bundle, seconds: float = CONNECTION_SECONDS) -> list[Finding]:
    """Which of the peers that this party calls accept a connection."""
    config = bundle.config
    found, missing = [], []
    for name, peer in config.peers.items():
        if peer.certificate is None:  # it was revoked, and nobody waits for it
            continue
        missing.append(name)
        if peer.address is not None and connects_to(config, name):
            found.append(_peer_finding(name, parse_address(peer.address), seconds))
            # A peer that listens has read its bundle, and would have refused a certificate that has
            # expired.
            if found[-1].level == MET:
                missing.remove(name)

    if expired := expired_peers(bundle.folder, missing):
        found.append(Finding(CERTIFICATES, NOTE, expired))
    return found


def _peer_finding(name: str, place: Address, seconds: float) -> Finding:
    try:
        socket.create_connection((place.host, place.port), timeout=seconds).close()
    # A name that cannot be resolved is a fault of the configuration, and time does not heal it; a
    # refused connection may only mean that the peer starts later. So one fails, and one is a note.
    except socket.gaierror as error:
        sentence = (
            f"The name of the host of {name}, {place.host}, cannot be resolved ({error.strerror})."
        )
        return Finding(
            ADDRESSES,
            FAILED,
            sentence,
            f"It cannot resolve the address of {name}.",
            MtcdError(sentence),
        )
    except OSError as error:
        why = error.strerror or "no answer"
        sentence = (
            f"{name} does not accept a connection at {place} ({why}): it may not be running yet."
        )
        return Finding(ADDRESSES, NOTE, sentence)
    return Finding(ADDRESSES, MET, f"{name} accepts connections at {place}.")
