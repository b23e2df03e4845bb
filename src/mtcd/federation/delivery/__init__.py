"""Custody: no token lost, none doubled, no update applied twice. No network in here, and no clock.

``records`` and ``journal``: what a party keeps, as bytes. ``envelopes``: what travels. ``reliable``: exactly-once
processing. ``iterations``, ``visits`` and ``syncs``: tokens made anew with a server (mtcd), and without it for a while.
``line``, ``search`` and ``lone_token``: without one (stcd), with the reasons why only one token ever counts.
``detours``: round the dead. ``absent``: servers that gather uploads go on without clients that are gone. ``ending``:
the end of a training. ``choose``: which of these a method needs. ``codecs``: envelopes on the wire.

Shown by tests on a simulated federation (envelopes lost, doubled, in any order; parties killed before and after a
commit and started again; hung; links cut):

- Whatever passes leaves no trace: every settled moment of stcd, mtcd (clusters, average, visitors, mini-batch) and
  svfl is that of a training without faults. ``test_delivery``: with_any_faults_that_pass. Bit by bit, but for what
  rests on the order in which tokens cross (the penalty with average; penalty and aggregate with visitors: rounding).
- The server may start an iteration anew at any moment, also needlessly, and nothing changes: iterations_started_anew.
- A client of mtcd (full batch) that stays dead keeps its last contribution in Z; Z^t is the aggregate of theta^t of
  living and dead to 1e-9 at every moment; when it comes back, the optimum is reached: a_client_that_stays_dead.
- Without a server, with false and right suspicions, exactly one token counts at every moment, and it is the aggregate
  of what living and dead hold once they have heard of it: ``test_recovery_lone_token``. Clients may die for good
  one after the other, also neighbours; the others get to the optimum of their own blocks:
  ``test_recovery_lone_token_down``.
- The same of accelerated tours, optimal sync, dcpa and changing networks: ``test_recovery_methods``.
- Svfl and mini-batches go on without the dead: the aggregate is always the sum of what each client told last; svfl ends
  at the optimum of the living blocks, and of all when they are back: ``test_recovery_gathering``.
- Journals: what is kept comes back, damage is noticed, and a commit that was cut short is not there:
  ``test_delivery_journal``. Envelopes and acks as bytes, every field mutated: ``test_delivery_codecs``.
- The end: parameters and summed ledgers are those of a training in one process that stops there: ``test_delivery_end``.
- With the server gone at any moment, or believed to be, tokens of the full batch roam on, also those that had gone up;
  at every moment each is the aggregate of the copies that clients hold for it, Z^t that of theta^t, and what was done
  meanwhile counts unless the server had synced: ``test_recovery_speculative``, ``test_recovery_speculative_cases``.
- Tours go round the dead; terms are forgotten when nobody can need them any more: ``test_recovery_roaming``.

Open:

- Tokens that roam speculatively after their iteration was synced do so in vain until they meet a client who knows, or
  the server is back.
- A token on its way to a client that dies while the server is gone waits for either.
- With mini-batches, of a client that stays dead the server knows each row as it was told last: these are of different
  moments, and 0 where it never told any.
- Without a server some who stay dead are waited for: the last part of ``lone_token`` says whom. Its terms are kept for
  ever; they are few, one for each time that the token was made anew.
- Accelerated tours, optimal sync, dcpa, split networks, and mtcd and stcd on changing networks wait for those who are
  gone: what they remember of earlier tours and syncs, nobody else knows how to undo.
- Relaying questions from neighbour to neighbour is left to the links.
"""
