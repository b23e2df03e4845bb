"""Regeneration of a lone token without a server (STCD), and why only one token ever counts.

**History.** The token goes from stay to stay: it arrives at a client, visits it, perhaps several
times, and is passed on to another one. The stays that count, in order, are the *history*. A client
that passes the token on keeps it as it was then (``last_sent``), and every client keeps a
checkpoint of itself from before its last stay. To regenerate the token is to truncate the history:
the client that does it, the initiator, sends its copy again, and no stay after its own counts. A
*term* records this: term g of the token, regenerated after r visits. Envelopes carry all terms that
their sender knows, and a token of an older term than the receiver knows is rejected (fencing). A
client that learns of a new term undoes its last stay, if that began after r visits or more.

**Ballot.** The initiator runs phase 1 of single-decree Paxos among the other clients. It first
sends probes (a pre-vote, as in Raft), to see whether the token is elsewhere and whether the clients
that matter are up; then a binding ``Prepare``. A client that answers it with a ``Promise`` accepts
no token until the initiator sends a ``Release``. Of two binding ballots, a client lets the one with
the later hop wait. No two ballots have the same number. The number is the term, if the token is
regenerated, and a client that has promised a higher ballot says so: the initiator then prepares
again, with a higher one. There is no phase 2: what a ballot decides is the initiator's own copy,
and the term that comes with it spreads the decision.

**When the initiator s, which passed the token to d, may decide.** No promise reports a later hop,
and

1. d itself has promised that it has not had the token (the link is cut, but d is up); or
2. a witness set has promised: all clients that d may have passed the token to, and one of the
   client p from which s had the token and the clients that s may pass it to.

The clients that d may pass the token to are its neighbours, but for those that the envelope of s
lists in ``avoid``. A client obeys that for the whole of its stay, even if a listed client is up;
when it passes the token on, it lists the clients that the next one must avoid. So clients may crash
one after the other, also neighbours, and no ballot needs the first of them for the last.

**At most one stay is truncated, and it can be undone.** Were there two stays after that of s, the
second would be at a client that d may have passed the token to. That client has promised: it had no
later stay then, and accepts none since. So there is at most the stay of d; it is the last one of d,
so d has the checkpoint from before it, whether d ever comes back or not.

**Two initiators.** Let s decide, and p as well, about s being down; no other client can, by the
above. For p, all clients must promise that s may pass the token to: so the witness of s is asked by
both, or is p itself (the two witness sets intersect, as quorums do). If p is first, the witness
lets s wait until it knows the outcome, and s learns of the term before it decides. If s is first, p
learns of the ballot of s, and decides with a higher one or not at all. Then whatever s regenerates
is stale: those that it may be passed to have promised p, so they accept it neither before they
learn of the term of p nor after. So of all terms the highest is the last of the history, and one
with a lower number and a later hop than another belongs to a truncated history: it is dropped. No
client has acted on it but its initiator, whose stay is undone.

**Nothing is lost either.** The regenerated token and its term are one commit, and so are a visit
and passing the token on. A client that restarts resumes its ballot, or learns that it is
superseded.

**Which clients are waited for.** The initiator, if it stays down while its binding ballot is open,
which is not for long. Neighbours that crash together, if the token was at one of them: one of the
two. Those on the other side of a partitioned network: it cannot be known whether the token is
there. A client that passed the token to another one, with all of its other neighbours in ``avoid``,
and crashed: the token then stays at that client. ``waiting_reason`` reports each of these cases.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import deepcopy

from mtcd.core.seeding import uniform
from mtcd.federation.delivery.policy import RecoveryPolicy
from mtcd.federation.recovery.detours import next_around
from mtcd.federation.recovery.search import Decision, Promises, Search
from mtcd.federation.recovery.token_history import TokenHistory, live_terms
from mtcd.methods.mtcd.server import TokenClient
from mtcd.network.topology import Network
from mtcd.protocol.codec.envelopes import End, Envelope, Prepare, Promise, Release, Terms
from mtcd.protocol.party import Message
from mtcd.protocol.token import Token


class LoneToken(RecoveryPolicy):
    """The policy of a client of STCD."""

    state_fields = ("search",)

    def __init__(self, party: TokenClient, network: Network) -> None:
        self.party, self.network = party, network
        self.near = frozenset(network.neighbours[party.number])
        self.history = TokenHistory(party)
        self.promises = Promises()
        self.search: Search | None = None
        """This client's own search for the token."""

    # The journal

    def kept(self) -> Sequence[tuple[object, Sequence[str]]]:
        return [
            (self, self.state_fields),
            (self.delivery, ("down",)),
            (self.history, self.history.state_fields),
            (self.promises, self.promises.state_fields),
        ]

    # Envelopes that arrive

    def arriving(self, envelope: Envelope) -> None:
        """Learn the terms first: a client that waits for a ballot that is over need not wait."""
        if envelope.terms and self.learn_terms(envelope.terms):
            self.delivery.commit()

    def must_defer(self, envelope: Envelope) -> bool:
        """No token while a binding ballot is open. Of two initiators, the one with the earlier hop
        goes first."""
        if self.search is None and not self.promises.promised:
            return False
        payload = envelope.message.payload
        if isinstance(payload, Token):
            return bool(self._binding_hops()) and not self.is_stale(envelope)
        if isinstance(payload, Prepare) and payload.binding:
            return any(hop < payload.hop for hop in self._binding_hops())
        return False

    def _binding_hops(self) -> list[int]:
        hops = self.promises.binding_hops()
        if self.search is not None and self.search.binding:
            hops.append(self.search.hop)
        return hops

    def process(self, envelope: Envelope) -> list[Message]:
        payload, sender = envelope.message.payload, envelope.sender
        if isinstance(payload, Prepare):
            if self.promises.promise(sender, payload, envelope.term, self.delivery.terms):
                self._answer(sender)  # otherwise the ack says why not
        elif isinstance(payload, Release):
            self.promises.release(sender, payload.ballot)
        elif isinstance(payload, Promise):
            if self.search is not None:
                self.search.record(sender, envelope.sequence, payload)
                self._continue_search()
        else:
            if self.search is not None and sender != self.party.number:
                self._stop_search()
            self.history.visited(envelope)
            return self.delivery.run_party(envelope)
        return []

    def after_end(self, envelope: Envelope) -> None:
        """Accept a release even then, as the end may be undone. Send the end to an initiator."""
        payload = envelope.message.payload
        if isinstance(payload, Release):
            self.promises.release(envelope.sender, payload.ballot)
        elif isinstance(payload, Prepare):
            self.delivery.announce_end([envelope.sender])

    # Messages to send

    def route(self, message: Message) -> Message:
        token, roaming, here = message.payload, self.party.plan.roaming, self.party.number
        assert isinstance(token, Token)
        walk, avoid, arrival = roaming.walks[token.index], self._avoid(), self.history.arrival
        if avoid or walk.length is not None:
            draw = uniform(roaming.seed, "detour", (token.index, self.term_of(token.t)), token.hop)
            previous = here if arrival is None else arrival[0]
            message.to = next_around(walk, self.network, message.to, here, previous, avoid, draw)
        return message

    def enqueued(self, envelope: Envelope) -> Envelope:
        here = self.party.number
        if envelope.to != here and isinstance(envelope.message.payload, Token):
            avoid = self._avoid()
            if avoid:
                up = (self.near - self.delivery.down) | {here, envelope.to}
                envelope = envelope._replace(avoid=avoid - up)
            self.history.last_sent = envelope
        return envelope

    def _avoid(self) -> frozenset[int]:
        """The clients that the token must not be passed to from here."""
        down, arrival = self.delivery.down, self.history.arrival
        if arrival is None:
            return down
        return down | arrival[1]

    # Terms

    def term_of(self, iteration: int) -> int:
        """The latest term of the token: one for all iterations."""
        return max(self.delivery.terms, default=0)

    def is_stale(self, envelope: Envelope) -> bool:
        terms = self.delivery.terms
        if not terms or envelope.term >= max(terms):
            return False
        return isinstance(envelope.message.payload, Token | End)

    def learn_terms(self, terms: Terms) -> bool:
        """Undo what the new term truncates: stays, ballots, and also an end of the training."""
        delivery, known = self.delivery, self.delivery.terms
        if terms.items() <= known.items():  # mostly there is none
            return False
        delivery.terms = live_terms(known | terms)
        new = [hop for term, hop in delivery.terms.items() if term not in known]
        if not new:
            return False
        restart = min(new)
        self.history.truncate(restart)
        self.promises.learn(delivery.terms)
        if delivery.ended is not None and delivery.ended.hop > restart:  # of a truncated history
            delivery.ended, delivery.ended_here = None, False
            if self.search is not None:
                self._ask(binding=False)
        delivery.cancel_stale()
        self._update_search()
        return True

    # Ballots

    def _answer(self, initiator: int) -> None:
        promises, down = self.promises, self.near & self.delivery.down
        ballot = promises.promised[initiator][0].ballot
        self.delivery.send_control(
            initiator, Promise(ballot, self.history.hop, promises.highest, down)
        )

    def peer_lost(self, k: int) -> None:
        """If the token was passed to this client, search for it."""
        self._links_changed()

    def peer_found(self, k: int) -> None:
        """If the token was passed to this client, the search is over."""
        self._links_changed()

    def _links_changed(self) -> None:
        for initiator in self.promises.promised:
            self._answer(initiator)
        self._update_search()
        self.delivery.commit()

    def _update_search(self) -> None:
        """Begin a search, continue it or stop it: as the links, the terms and the last stay are
        now."""
        history, delivery = self.history, self.delivery
        sent = history.last_sent
        if sent is None or sent.to not in delivery.down or delivery.ended is not None:
            self._stop_search()
        elif self.search is None and not history.moved_on:
            arrival = history.arrival
            witnesses = None
            if arrival is not None:
                witnesses = frozenset({arrival[0], *self.near} - arrival[1])
            receivers = (
                frozenset(self.network.neighbours[sent.to]) - {self.party.number} - sent.avoid
            )
            token = sent.message.payload
            assert isinstance(token, Token)
            self.search = Search(token.hop, sent.to, receivers, witnesses)
            self._ask(binding=False)
        self._continue_search()

    def _continue_search(self) -> None:
        search = self.search
        if search is None:
            return
        search.down[self.party.number] = self.near & self.delivery.down
        search.highest = max(search.highest, self.promises.highest)
        match search.decision(self.network.neighbours):
            case Decision.ELSEWHERE:
                self.history.moved_on = True
                self._stop_search()
            case Decision.PROBE:
                self._ask(binding=False)
            case Decision.PREPARE:
                self._ask(binding=True)
            case Decision.REGENERATE:
                self._regenerate(search)

    def _ask(self, binding: bool) -> None:
        assert self.search is not None
        search, clients = self.search, self.network.size
        highest = max(self.promises.highest, search.highest)
        # no other client has such a number
        ballot = (highest // clients + 1) * clients + self.party.number
        search.ask(ballot, binding)
        self.promises.highest = search.highest = ballot
        self._tell_all(Prepare(search.hop, ballot, binding))

    def _stop_search(self) -> None:
        if self.search is not None:
            ballot, self.search = self.search.ballot, None
            self._tell_all(Release(ballot))

    def _regenerate(self, search: Search) -> None:
        """Send the copy of the token, in a new term."""
        delivery, history = self.delivery, self.history
        assert history.last_sent is not None
        again: Message = deepcopy(history.last_sent.message)
        delivery.terms = live_terms(delivery.terms | {search.ballot: search.hop})
        delivery.cancel_stale()
        self._stop_search()
        history.last_sent = None
        delivery.enqueue(self.route(again), 0)  # one term for all iterations

    def _tell_all(self, payload: Prepare | Release) -> None:
        for k in range(self.network.size):
            if k != self.party.number:
                self.delivery.send_control(k, payload)

    # Waiting

    @property
    def waits_for(self) -> frozenset[int]:
        """The clients that are down and without whose promises the token cannot be regenerated."""
        if self.search is None:
            return frozenset()
        neighbours = self.network.neighbours
        return frozenset().union(*self.search.missing(neighbours)) & self.search.unreachable(
            neighbours
        )

    def waiting_reason(self, names: Mapping[int, str]) -> str | None:
        arrival, down = self.history.arrival, self.delivery.down
        for k in down:
            if self.promises.is_bound_to(k):
                return (
                    f"{names[k]} went down while it was searching for the token, and the others "
                    f"wait for the result. Start {names[k]} again."
                )
        if self.search is not None:
            to, missing = names[self.search.to], self.search.missing(self.network.neighbours)
            reason = f"The token was passed on to {to}, which cannot be reached. "
            if not missing:
                return reason + "The other clients are being asked where it is."
            groups = ", ".join(" or ".join(names[k] for k in sorted(group)) for group in missing)
            return (
                f"{reason}It is regenerated when these confirm that they lack it: {groups}. Or "
                f"start {to} again."
            )
        up = self.near - down
        if arrival is not None and self.history.last_sent is None and up and up <= arrival[1]:
            avoided = ", ".join(names[k] for k in sorted(up))
            return (
                f"The token stays here until {names[arrival[0]]} is back, as that party required "
                f"it to avoid {avoided}. Start {names[arrival[0]]} again."
            )
        return None
