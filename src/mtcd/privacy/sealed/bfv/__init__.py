"""Homomorphic encryption of a vector over samples, for sealed tours: products with a plain matrix,
sums, masks.

``cipher`` has the interface. ``bfv`` implements it with the BFV scheme, ``clear`` without
encryption, for tests.
"""
