"""Exactly-once delivery between parties that may crash: no message is lost, none is processed
twice.

``envelopes``: what travels. ``reliable_party``: a party with its outbox, its journal and a recovery
policy. ``policy``: the interface of the policies, which are in ``mtcd.federation.recovery``.
``journal``, ``mapped``: what a party keeps, as bytes; ``durations``: how long that took.
``frames``: messages and envelopes on the wire.

No network in here, and no clock: their owner passes in what arrives and who is down
(``mtcd.federation.node`` for processes, ``mtcd.testing.simulator`` for tests). Journals: what is
kept comes back, damage is noticed, and a commit that was cut short is not there
(``test_delivery_journal``). Envelopes and acks as bytes, every field
mutated: ``test_delivery_codecs``.
"""
