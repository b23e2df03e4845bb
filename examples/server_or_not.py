"""One dial from client-server to fully decentralised: the same problem, five settings, one table of
costs.

A message between client and server costs 1, a hop between neighbours 1/20.
"""

import mtcd

data = mtcd.synthetic("ridge", samples=200, features=120, clients=20)
ridge = mtcd.Glm("ridge", alpha=5.0)
settings = {
    "everybody asks the server": mtcd.SVFL(local_updates=10),
    "4 tokens, sync every 5 hops": mtcd.MTCD(tokens=4, hops=5, local_updates=10),
    "2 tokens, sync every 20 hops": mtcd.MTCD(tokens=2, hops=20, local_updates=10),
    "a token per cluster of 5": mtcd.MTCD(
        tokens=4, hops=5, local_updates=10, combine="cluster", stepsize=2e-4
    ),
    "no server at all": mtcd.STCD(local_updates=10),
}
print(f"{'':30} {'hops':>8} {'syncs':>8} {'gap':>9} {'cost':>9}")
for name, method in settings.items():
    stop = mtcd.Stop(gap=1e-3, iterations=20_000)
    last = mtcd.train(data, ridge, "cycle", method, stop, mtcd.Costs(ratio=20)).final
    print(f"{name:30} {last.hops:8,} {last.syncs:8,} {last.gap:9.1e} {last.cost:9,.0f}")
