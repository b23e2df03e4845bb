"""Everything: ``python -m benchmarks``."""

from benchmarks import hops, memory, startup, wire

for benchmark in (hops, wire, startup, memory):
    benchmark.main()
