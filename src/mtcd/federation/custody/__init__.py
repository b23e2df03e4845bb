"""Custody: no token lost, none doubled, no update applied twice. No network in here, and no clock.

``records`` and ``journal``: what a party keeps, as bytes. ``letters``: what travels. ``postman``: exactly-once
processing. ``iterations``: tokens made anew with a server (mtcd). ``line``, ``search`` and ``lone_token``: without one
(stcd), with the reasons why only one token ever counts. ``detours``: the way round those who are gone.

Shown by tests on a simulated federation (letters lost, doubled, in any order; parties killed before and after a
commit and started again; hung; links cut):

- Whatever passes leaves no trace: every settled moment of stcd, mtcd (clusters, average, visitors, mini-batch) and
  svfl is that of a training without faults. ``test_custody``: with_any_faults_that_pass. Bit by bit, but for what
  rests on the order in which tokens cross (the penalty with average; penalty and aggregate with visitors: rounding).
- The server may start an iteration anew at any moment, also needlessly, and nothing changes: iterations_started_anew.
- A client of mtcd (full batch) that stays dead keeps its last contribution in Z; Z^t is the aggregate of theta^t of
  living and dead to 1e-9 at every moment; when it comes back, the optimum is reached: a_client_that_stays_dead.
- Without a server, with false and right suspicions, exactly one token counts at every moment, and it is the aggregate
  of what living and dead hold once they have heard of it: ``test_custody_lone``. Clients may die for good one after
  the other, also neighbours; the others get to the optimum of their own blocks: ``test_custody_lone_dead``.
- Journals: what is kept comes back, damage is noticed: ``test_custody_journal``.

Open:

- Mini-batches and svfl wait for a client that stays dead: nobody can say what its upload would be.
- Without a server some who stay dead are waited for: the last part of ``lone_token`` says whom.
- Fences are kept for ever; they are few, one for each time that something was made anew.
- Accelerated tours, optimal sync, dcpa, split networks, and stcd on changing networks are refused: their parties keep
  more. Mtcd and svfl on changing networks are not refused, but no test has tried them.
- The wire format has no codecs for receipts and for the questions of ``lone_token``, and no place for fences.
- Relaying questions from neighbour to neighbour is left to the links.
"""
