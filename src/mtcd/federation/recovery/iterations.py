"""Restart of iterations: the terms that the client and the server of MTCD share, and why they are
safe.

**Restart.** The server has Z^t and every client has theta_k^t until the sync. So when a token does
not come back, the server cancels the iteration and restarts it in the next term. All tokens of the
iteration set out again, not only the lost one: what a token reports of the coming sync depends on
which tokens were at a client before it.

**Fencing.** Every envelope carries the terms that its sender knows. A client rejects what belongs
to an older term of the iteration. Whatever belongs to iteration t + 1 was caused by the sync of
iteration t, and that by the last term of iteration t; so no client completes iteration t without
knowing which term was synced.

**Which terms are kept.** Something of iteration t reaches a party that is further on only if it is
stale: all tokens that count had been uploaded by then. So a client in iteration t needs no terms of
earlier iterations for itself. For clients that were down, the server keeps the term of iteration t
until every client has sent it something of a later iteration. Envelopes of the server carry it, and
a client that passes on a token of a later iteration also passes on the terms that came with that
token.

**Detection.** The server learns from its own links that a client is down, and from a client that
holds a token for it (``Undeliverable``, ``HolderLost``). Both are needed: a regenerated token may
get to a client that has not yet noticed, and from there to the one that is down. It also gets to a
client that only the server cannot reach, as their link is cut: if that client crashes, only its
neighbours notice.

**Speculative roaming.** While the server is down, tokens continue to roam. A token that has not
been uploaded does so as if nothing had happened. One that was uploaded may be at the server, may
even have been synced, or may never have arrived: its last client takes it back and lets it roam in
a speculative term, the number after the term in which it was uploaded. A client that it visits
enters that speculative term, and so does every token that comes there later. So

- what was computed up to a speculative term, at clients and in tokens, never depends on a later
  one;
- a token that was uploaded, or confirmed, in a speculative term makes no more visits in it.

Hence tokens that were uploaded or confirmed in one speculative term are consistent with each other,
and the server syncs no others. If a token is uploaded in a later speculative term than the others,
or if the server has restarted and does not know what happened meanwhile, it requests the others
again (``ResendTokens``): a client that still has such a token as it was uploaded uploads it once
more, which confirms it; otherwise the token roams, and will be uploaded later. The term that the
server announces is the one that was synced. Clients keep a checkpoint of what they held before each
speculative term, and roll back to it if the term was not synced.
"""

from __future__ import annotations

from mtcd.methods.mtcd.client import Done
from mtcd.protocol.codec.envelopes import Envelope, HolderLost, ResendTokens, Terms, Undeliverable
from mtcd.protocol.token import Token

SPECULATIVE_TERMS = 2**10  # any limit will do that is seldom reached
"""Terms that the server starts are multiples of this; the numbers after each are its speculative
terms."""


def known_term(terms: Terms, iteration: int) -> int:
    """The term of an iteration; 0 until another is started."""
    return terms.get(iteration, 0)


def base_term(term: int) -> int:
    """The term in which a speculative term began; the term itself, if it is not speculative."""
    return term - term % SPECULATIVE_TERMS


def has_speculative_term(term: int) -> bool:
    """Whether another speculative term can follow this one."""
    return base_term(term + 1) == base_term(term)


def is_over(envelope: Envelope, t: int, term: int) -> bool:
    """Whether an envelope is stale for a party in iteration ``t`` that knows ``term`` for the
    envelope's iteration.

    It is if its iteration is over, or if its term is over or was never started. Uploads are never
    stale: they do not depend on tokens.
    """
    payload = envelope.message.payload
    if not payload.depends_on_tokens:
        return False
    if envelope.iteration < t and isinstance(
        payload, Token | Done | Undeliverable | HolderLost | ResendTokens
    ):
        return True
    return base_term(envelope.term) != base_term(term)
