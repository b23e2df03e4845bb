"""Exit statuses: how a party's process ended, told to others, so that finished is told from dead.

A status says how the run ended at this party, or that it runs again. It names the run: a status of
another run is refused. It is signed with the key of the party, so that nobody else can make or
change one. The latest status of a party counts: a restarted party replaces its earlier one.

A party sends its own status to all peers, and keeps theirs for the operator. The server is not told
the objective, which it may not know. Without a server, parties forward a status to neighbours that
are not directly connected to its origin. So the last party to leave knows how all the others ended.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from time import sleep, time
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding
from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    FiniteFloat,
    StrictInt,
    StrictStr,
    ValidationError,
)

from mtcd.core.errors import MtcdError, WireError
from mtcd.core.received import read_json
from mtcd.federation.credentials.certificates import load_certificate, load_key
from mtcd.federation.credentials.credentials import WHAT, Credentials, Members
from mtcd.federation.credentials.private_files import read_file, write_files
from mtcd.federation.names import SERVER
from mtcd.federation.transport import CERTIFICATE_FILE, KEY_FILE

if TYPE_CHECKING:  # the operator reads statuses, and imports no methods for it
    from mtcd.federation.node.context import NodeContext
    from mtcd.federation.node.folder import RunFolder
    from mtcd.federation.node.link import IncomingRequest

FILE = "exit_statuses.json"  # in run folders
MARK = b"mtcd last word 1"  # signed: other bytes would refuse parties of older versions
SIGNATURE = ec.ECDSA(hashes.SHA256())
RUNNING, FINISHED, STOPPED, DIVERGED = "running", "finished", "stopped", "diverged"
FAILED, INTERRUPTED = "failed", "interrupted"
KEYS = {"word", "certificate", "signature"}
LAST_MOMENT = 253_402_300_799_000  # the end of the year 9999, in ms

Signed = dict[str, str]
"""The signed text of a status, with its certificate and signature in hex, for JSON."""
ShortText = Annotated[StrictStr, Field(max_length=200, pattern=r"^[ -~]*$")]


class ExitStatus(BaseModel):
    """How the run ended at one party. ``run`` is empty before a run is agreed."""

    model_config = ConfigDict(frozen=True)

    party: ShortText
    run: ShortText
    outcome: Literal["running", "finished", "stopped", "diverged", "failed", "interrupted"]
    time: Annotated[StrictInt, Field(ge=0, le=LAST_MOMENT)]
    """In ms since 1970; each status of a party has a later one."""
    status: ShortText = ""
    """The status of the end, such as the name of a limit; of a failure, its kind."""
    iteration: Annotated[StrictInt, Field(ge=0)] | None = None
    objective: FiniteFloat | None = None

    @property
    def when(self) -> datetime:
        """The time in UTC."""
        return datetime.fromtimestamp(self.time / 1000, UTC)


class Signer:
    """Signs the statuses of one party, with the key in its credentials."""

    def __init__(self, bundle: Credentials) -> None:
        self._federation = bundle.config.federation
        key, certificate = bundle.folder / KEY_FILE, bundle.folder / CERTIFICATE_FILE
        self._key = load_key(read_file(key, WHAT), str(key))
        self._certificate = load_certificate(
            read_file(certificate, WHAT), str(certificate)
        ).public_bytes(Encoding.DER)

    def sign(self, status: ExitStatus) -> Signed:
        """The status with its certificate and signature."""
        # The text itself is signed, not its values: the receiver verifies what it was sent.
        text = status.model_dump_json()
        signature = self._key.sign(_bound(self._federation, self._certificate, text), SIGNATURE)
        return {
            "word": text,
            "certificate": self._certificate.hex(),
            "signature": signature.hex(),
        }


class ExitStatuses:
    """The latest status of each party, checked, and kept in a file. A damaged file counts as
    empty."""

    def __init__(self, bundle: Credentials, path: Path) -> None:
        self.path, self._members, self._config = path, Members(bundle), bundle.config
        self._kept: dict[str, tuple[ExitStatus, Signed]] = {}
        with suppress(OSError, ValueError, RecursionError):
            for signed in json.loads(path.read_text()):
                with suppress(WireError):  # its certificate may have expired
                    self._keep(self.read(signed), signed)

    @property
    def statuses(self) -> dict[str, ExitStatus]:
        """The latest exit status of each party from which one has arrived, by name."""
        return {name: status for name, (status, _) in self._kept.items()}

    def signed(self, names: Iterable[str] | None = None) -> list[Signed]:
        """The statuses of these parties, or of all, to pass on."""
        if names is None:
            names = self._kept
        return [self._kept[name][1] for name in names if name in self._kept]

    def read(self, signed: Any) -> ExitStatus:
        """The status, if its signature is that of the party it is of; otherwise raises a
        WireError."""
        try:
            # Exactly these: other keys would travel on unsigned.
            if set(signed) != KEYS:
                raise ValueError("other keys")
            text = signed["word"]
            certificate, signature = (
                bytes.fromhex(signed[key]) for key in ("certificate", "signature")
            )
            status = ExitStatus.model_validate_json(text)
        except (ValidationError, ValueError, TypeError, KeyError):
            raise WireError("an exit status", "is not readable") from None
        # Whose certificate it is, is decided by the members of this federation, not by the text.
        owner, public = self._members.owner(
            certificate, [*self._config.parties, SERVER], "an exit status"
        )
        try:
            public.verify(signature, _bound(self._config.federation, certificate, text), SIGNATURE)
        except InvalidSignature:
            raise WireError(f"the signature of {owner!r}", "does not fit an exit status") from None
        # A member may sign for itself only.
        if status.party != owner:
            raise WireError(f"an exit status of {status.party!r}", f"is signed by {owner!r}")
        return status

    def add(self, status: ExitStatus, signed: Signed) -> bool:
        """Keep a status that was read, if it is later than the one known; returns whether it is."""
        new = self._keep(status, signed)
        if new:
            self._write()
        return new

    def keep_runs(self, runs: Iterable[str]) -> None:
        """Drop the statuses of all other runs."""
        kept = {name: one for name, one in self._kept.items() if one[0].run in set(runs)}
        if len(kept) < len(self._kept):
            self._kept = kept
            self._write()

    def _keep(self, status: ExitStatus, signed: Signed) -> bool:
        known = self._kept.get(status.party)
        if known is not None:
            # The server has the one without the objective; of one moment the fuller one counts.
            before = (known[0].time, known[0].objective is not None)
            if before >= (status.time, status.objective is not None):
                return False
        self._kept[status.party] = status, signed
        return True

    def _write(self) -> None:
        # a folder that cannot be written must not end a party, nor its status
        with suppress(MtcdError):
            write_files(
                self.path.parent, {self.path.name: json.dumps(self.signed()).encode()}, private=True
            )


def _bound(federation: str, certificate: bytes, text: str) -> bytes:
    """The bytes to sign. Sizes come first, so that the encoding is unique."""
    parts = (MARK, federation.encode(), certificate, text.encode())
    return b"".join([*(len(part).to_bytes(4, "big") for part in parts), *parts])


EXIT_STATUS = "exit_status"  # the kind of the request
WAIT_SECONDS = 1.0  # for acks, before this party leaves
STEP_SECONDS = 0.05
SENDING_SECONDS = 0.2  # when the loop has failed, and no ack is processed


class ExitStatusGossip:
    """The exit statuses that one party knows. ``run`` is empty before a run is agreed."""

    def __init__(self, context: NodeContext, folder: RunFolder) -> None:
        self.bundle, self.rpc, self.loop, self.log = (
            context.bundle,
            context.rpc,
            context.loop,
            context.log,
        )
        self.me, self.run = context.bundle.config.name, ""
        self.known = ExitStatuses(context.bundle, folder.path / FILE)
        self._signer = Signer(context.bundle)
        self._for_server: Signed | None = None
        self._told: dict[str, set[tuple[str, int]]] = {}
        """By peer: the statuses that it has, or that are being sent to it."""
        self._pending = 0
        config = context.bundle.config
        self._near = {frozenset(link) for link in config.links}
        self._forwards = SERVER not in config.peers and not config.is_server
        self.rpc.on(EXIT_STATUS, self._receive)

    def begin(self, run: str) -> None:
        """Start a run, or resume it: drop the statuses of other runs, and report running again."""
        self.run = run
        self.known.keep_runs([run])
        if self.me in self.known.statuses:
            self.say(RUNNING)

    def say(self, outcome: str, **facts: Any) -> None:
        """A new status of this party."""
        before = self.known.statuses.get(self.me)
        # Later than the one before, even if the clock was set back: the latest counts.
        moment = int(time() * 1000)
        if before is not None:
            moment = max(moment, before.time + 1)
        status = ExitStatus.model_validate(
            {"party": self.me, "run": self.run, "outcome": outcome, "time": moment, **facts}
        )
        self.known.add(status, self._signer.sign(status))
        self._for_server = self._signer.sign(status.model_copy(update={"objective": None}))
        self.tell()

    def tell(self) -> None:
        """Send all peers that are up the statuses that they do not have."""
        for peer in sorted(self.rpc.link.up):
            told = self._told.setdefault(peer, set())
            fresh: dict[str, tuple[str, int]] = {}
            for name, status in self.known.statuses.items():
                this = name, status.time
                if self._is_for(name, peer) and this not in told:
                    fresh[name] = this
            if fresh:
                # Before the answer: the next step must not send them again while this is under way.
                told |= set(fresh.values())
                body = self._bodies(peer, list(fresh))
                self._pending += 1
                self.rpc.ask(
                    peer, EXIT_STATUS, body, self._answered(peer, set(fresh.values())), True
                )

    def _is_for(self, name: str, peer: str) -> bool:
        """Whether this party sends a peer the status of party ``name``."""
        if name == self.me:
            return True
        # A neighbour of its origin has it from there.
        return self._forwards and name != peer and frozenset((name, peer)) not in self._near

    def _bodies(self, peer: str, names: list[str]) -> bytes:
        if peer == SERVER and self._for_server is not None:
            return json.dumps([self._for_server]).encode()
        return json.dumps(self.known.signed(names)).encode()

    def _answered(
        self, peer: str, sent: set[tuple[str, int]]
    ) -> Callable[[bytes | None, str], None]:
        def answered(answer: bytes | None, why: str) -> None:
            self._pending -= 1
            if answer is None and not why:  # lost; one that is refused is not sent again
                self._told[peer] -= sent

        return answered

    def _receive(self, request: IncomingRequest) -> None:
        """Keep what a peer sends: its own status, and others that it forwards."""
        brought = read_json(request.body)
        members = len(self.bundle.config.parties) + 1
        if not isinstance(brought, list) or not 1 <= len(brought) <= members or not request.direct:
            raise WireError("exit statuses", "are not readable")
        statuses = [self.known.read(signed) for signed in brought]
        # Two of one party in a message would make the order of its list count.
        if len({status.party for status in statuses}) < len(statuses):
            raise WireError("exit statuses", "hold two of one party")
        # A status of another run says nothing about this one, however well it is signed.
        if any(status.run != self.run for status in statuses):
            raise WireError("run", "is another one")
        told = self._told.setdefault(request.sender, set())
        for status, signed in zip(statuses, brought, strict=True):
            # What others say of this party is older than what it knows itself.
            if status.party != self.me:
                self.known.add(status, signed)
                told.add((status.party, status.time))
        request.answer()
        if self._forwards:
            self.tell()

    # Leaving

    def leave(self, then: Callable[[], None]) -> None:
        """Call ``then`` when the statuses are delivered, or after a while."""
        self.tell()
        # Not for ever: a peer that does not answer may have left itself.
        end = self.loop.now() + WAIT_SECONDS

        def step() -> None:
            if self._pending and self.loop.now() < end:
                self.loop.later(STEP_SECONDS, step)
            else:
                then()

        step()

    def say_at_once(self, outcome: str, **facts: Any) -> None:
        """Send a new status after the loop has failed, without waiting for acks."""
        self.say(outcome, **facts)
        if self._pending:
            sleep(SENDING_SECONDS)
