"""A party that cannot take part tells all others why, before the run begins: nobody waits for it in
vain.

A refusal goes from peer to peer, over direct links only, so that every receiver knows who says it.
Whoever receives one passes it on to its own peers, and ends with an error that names the party and
the reason. Once training has begun, a refusal ends nobody: the others train on, as they do when a
party is down.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from typing import Any

from mtcd.core.errors import ConfigError, DataError, MtcdError, NotInstalledError, WireError
from mtcd.core.received import read_json
from mtcd.federation.names import SERVER
from mtcd.federation.node.context import NodeContext
from mtcd.federation.node.link import IncomingRequest
from mtcd.federation.node.log import tidy
from mtcd.federation.node.rpc import UNABLE
from mtcd.federation.preflight import ELSEWHERE, table_failure

LONGEST_BYTES = 1_000_000  # with the names of many parties
STEP_SECONDS = 0.05
# for which a party that cannot take part stays to tell others, who may be starting
OWN_SECONDS = 30.0
PASSING_SECONDS = 5.0  # the same for one that passes it on
ALONE_SECONDS = 10.0  # without any connection
LAST_SECONDS = 1.0


class UnableError(MtcdError):
    """A party cannot take part in the run. ``reason`` is what all parties may read; ``by`` reports
    it."""

    def __init__(self, party: str, reason: str, by: str | None = None) -> None:
        said = f", as {by} reports"
        if by in (None, party):
            said = ""
        super().__init__(
            f"Training has not begun, because {party} cannot take part{said}. When that is mended, "
            f"start all parties again. The reason: {reason}"
        )
        self.party, self.reason = party, reason
        self.summary = f"Ending, because {party} cannot take part: {reason}"
        """For the log, which others may read."""


def reason_of(error: BaseException) -> str:
    """The reason of a failure as others may read it: errors on data name columns, and may show
    values."""
    if isinstance(error, NotInstalledError | WireError):
        return str(error)
    if isinstance(error, DataError | ConfigError):
        return table_failure(error).told
    if isinstance(error, MtcdError):
        return f"It failed ({type(error).__name__}). {ELSEWHERE}"
    return f"It ended with an unexpected error ({type(error).__name__}). {ELSEWHERE}"


class Refusal:
    """What one party says and hears about parties that cannot take part. ``begun`` says whether
    training has begun."""

    def __init__(self, context: NodeContext, begun: Callable[[], bool]) -> None:
        self.context, self.rpc, self.loop = context, context.rpc, context.loop
        self._begun = begun
        self._aware: set[str] = set()
        """The members that know, as far as this one has heard."""
        self._told: set[str] = set()
        """The peers that have heard it from this party: by it they also know that this one
        knows."""
        self._asked: set[str] = set()
        self._heard_from: str | None = None
        self._content: dict[str, Any] | None = None
        """What this party tells; None until it does."""
        self.rpc.on(UNABLE, self._receive)

    def _receive(self, request: IncomingRequest) -> None:
        party, reason, aware = _read(request, [*self.context.bundle.config.parties, SERVER])
        self._aware |= {request.sender, *aware}
        # Answered even if nothing follows: the sender learns who knows, and may leave.
        request.answer(json.dumps(sorted(self._aware)).encode())
        if self._content is not None or self._heard_from is not None or self._begun():
            return
        self._heard_from = request.sender
        error = UnableError(party, reason, request.sender)
        # In the loop, after the answer has been sent.
        self.loop.call(lambda: _raise(error))

    def tell(self, error: BaseException) -> None:
        """Tell all peers why this party ends; returns when they know, or after a while.

        Called when the loop has ended by the error, while the links are open. Nothing else is done
        any more: requests are dropped, and no timer of before is due.
        """
        heard = self._heard_from is not None
        party, reason = self.context.bundle.config.name, reason_of(error)
        if isinstance(error, UnableError):
            party, reason = error.party, error.reason
        self._content = {"party": party, "reason": reason}
        # In this order: what ends below must neither ask nor answer anything but this.
        self.rpc.end()
        self.context.rpc_client.give_up()
        self.loop.drop_timers()
        # Whoever passes it on is not the only one that tells.
        seconds = OWN_SECONDS
        if heard:
            seconds = PASSING_SECONDS
        self._until = self.loop.now() + seconds
        self._alone_until = self.loop.now() + min(seconds, ALONE_SECONDS)
        self._over = False
        self._step()
        while not self._over:
            try:
                self.loop.run()
                return
            except MtcdError:  # of what was under way
                continue
            except KeyboardInterrupt:  # whoever does not want to wait sees the reason all the same
                return

    def _step(self) -> None:
        link, now = self.rpc.link, self.loop.now()
        alone = not link.up and not self._aware and now > self._alone_until
        # a peer that knows already is told too: it may stay until it has heard that this party
        # knows
        untold = link.up - self._told
        everybody = link.peers <= self._aware and not untold
        if everybody or alone or now > self._until:
            self._report_back()
            return
        for peer in untold - self._asked:
            self._ask(peer, lambda: None)
        self.loop.later(STEP_SECONDS, self._step)

    def _report_back(self) -> None:
        """Tell the peers once more, with all members that know by now: they may stay for these."""
        left = set(self.rpc.link.up)
        if not left:
            self._stop()
            return

        def answered(peer: str) -> None:
            left.discard(peer)
            if not left:
                self._stop()

        for peer in sorted(left):
            self._ask(peer, partial(answered, peer))
        self.loop.later(LAST_SECONDS, self._stop)

    def _stop(self) -> None:
        self._over = True
        self.loop.stop()

    def _ask(self, peer: str, then: Callable[[], None]) -> None:
        self._asked.add(peer)
        body = json.dumps({**(self._content or {}), "aware": sorted(self._aware)}).encode()

        def answered(answer: bytes | None, why: str) -> None:
            self._asked.discard(peer)
            # an older version refuses a request that it does not know
            if answer is not None or why:
                self._told.add(peer)
                self._aware |= {peer, *_names(answer, self.context.bundle.config.parties)}
            then()

        self.rpc.ask(peer, UNABLE, body, answered, direct=True)


def _read(request: IncomingRequest, members: list[str]) -> tuple[str, str, set[str]]:
    """The party that cannot take part, why, and who knows."""
    if not request.direct:
        raise WireError("kind", "is never relayed")
    content = read_json(request.body, LONGEST_BYTES)
    if not isinstance(content, dict) or content.get("party") not in members:
        raise WireError("refusal", "is not that of a party")
    reason = content.get("reason")
    if not isinstance(reason, str) or not reason:
        raise WireError("refusal", "gives no reason")
    return content["party"], tidy(reason), _known(content.get("aware"), members)


def _names(answer: bytes | None, members: list[str]) -> set[str]:
    """The members that an answer names as aware; none in an answer that is not readable."""
    return _known(read_json(answer or b"", LONGEST_BYTES), [*members, SERVER])


def _known(listed: Any, members: list[str]) -> set[str]:
    # Only members, whatever the list holds: names from others are looked up, never shown.
    if not isinstance(listed, list):
        return set()
    return {name for name in members if name in listed}


def _raise(error: BaseException) -> None:
    raise error
