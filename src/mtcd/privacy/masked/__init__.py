"""Secure aggregation at syncs: clients upload masked integers, and the server learns their sum
only.

Each pair of clients shares a key (X25519, HKDF), from which both compute the same mask for each
sync (AES-256 in counter mode). One adds it to its upload and the other subtracts it, so the masks
cancel in the sum of all uploads. Sums are exact: numbers are rounded to fixed point once
(``fixed_point.py``), and added modulo 2^64.

**A party that is down.** If all uploads together reveal their sum without another message, then an
upload that arrives late still completes it; a sum over the other clients, opened in the meantime,
would leave the late one alone. So with simple masks no key and no mask is ever opened to the
server, and the training waits for the party (``parties.py``). With double masks (Bonawitz et al.
2017) it continues, for another exchange in every sync (``double_client.py``).
"""
