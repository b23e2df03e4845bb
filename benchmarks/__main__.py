"""Everything: ``python -m benchmarks``."""

from benchmarks import hops, memory, startup

for benchmark in (hops, startup, memory):
    benchmark.main()
