"""Recovery: what each kind of method does about parties that are down. One policy per kind, chosen
by ``choose.py``.

- ``wait`` waits until they are up again (accelerated tours, optimal sync, split networks, changing
  networks; clients of SVFL).
- ``iteration_client`` and ``iteration_server`` restart iterations, in terms that fence off older
  ones (MTCD); ``iterations`` has the argument.
- ``lone_token`` regenerates a token without a server, by ballot (STCD), and has the argument;
  ``search``, ``promises`` and ``token_history`` are its parts.
- ``uploads`` continues with the last upload of each client (MTCD with mini-batches).
- ``in_step`` waits, and stops all clients at the same iteration (DCPA, Tree-CG).
- ``detours`` finds the way of a token around clients that are down.

Methods beside the core bring their own, in the group ``mtcd.recovery`` of their ``feature.py``:
``methods/svfl/recovery.py`` (by ``uploads``).

Tests on simulated federations (``mtcd.testing.simulator``: envelopes lost, duplicated and
reordered; parties crash before and after a commit, restart, hang; links are cut) show:

- Faults that pass leave no trace: every report of STCD, MTCD (clusters, average, visitors,
  mini-batch) and SVFL is that of a training without faults, bit for bit, but for what depends on
  the order in which tokens cross (the penalty with average; penalty and aggregate with visitors:
  rounding). ``test_delivery``; other methods: ``test_recovery_methods``.
- The server may restart an iteration at any moment, also needlessly, and nothing changes.
- A client of MTCD (full batch) that stays down keeps its last contribution in Z; Z^t is the
  aggregate of theta^t of all clients to 1e-9 at every moment; when the client is up again, the
  optimum is reached.
- Without a server, with right and wrong suspicions, exactly one token counts at every moment, and
  it is the aggregate of what all clients hold: ``test_recovery_lone_token``. Clients may crash for
  good one after the other, also neighbours; the others reach the optimum of their own blocks:
  ``test_recovery_lone_token_down``.
- SVFL and mini-batches continue without clients that are down: the aggregate is the sum of the last
  uploads; SVFL ends at the optimum of the blocks of the others, and of all when they are up again:
  ``test_recovery_gathering``.
- With the server down at any moment, or believed to be, tokens of the full batch roam on, also
  those that were uploaded; at every moment each is the aggregate of the copies that clients hold
  for it, Z^t that of theta^t, and speculative visits count unless the server had synced:
  ``test_recovery_speculative``.
- Tours go around clients that are down; terms are dropped when no party can need them:
  ``test_recovery_roaming``.
- The end: parameters and summed ledgers are those of a training in one process that stops there:
  ``test_delivery_end``.

Limits:

- Tokens that roam speculatively after their iteration was synced do so in vain, until they meet a
  client that knows of it, or the server is up.
- A token on its way to a client that crashes while the server is down waits for either.
- With mini-batches, the server knows each row of a client that stays down as it was uploaded last:
  the rows are of different moments, and 0 where it never uploaded any.
- Without a server, some clients that stay down are waited for: the last part of ``lone_token`` says
  which. Its terms are kept for ever; they are few, one for each regeneration of the token.
- Relaying control payloads from neighbour to neighbour is left to the links.
"""
