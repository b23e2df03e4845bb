"""The schema of messages: fields that know how they are written as bytes, read, checked and
bounded.

A payload declares its schema beside its class, once (``payloads.py``), with types such as
``Iteration`` or ``Aggregate``. The federation's frames, its journals and the ledger use that
declaration.
"""
