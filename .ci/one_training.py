"""Import every public name and train once, with and without a server: used on each Python."""

import sys

import mtcd

missing = []
for name in mtcd.__all__:
    try:
        getattr(mtcd, name)
    except mtcd.MtcdError as error:  # names the extra that is not installed
        missing.append(f"{name}: {error}")
print(*missing, sep="\n")

data = mtcd.synthetic("logistic", samples=100, features=20, clients=5)
for network, method in (("path", None), ("cycle", mtcd.MTCD(tokens=2, hops=4))):
    run = mtcd.train(data, mtcd.Glm("logistic", l2=1), network, method, mtcd.Stop(gap=1e-3))
    assert run.status == "converged", run
    print(f"Python {sys.version.split()[0]}:", repr(run).splitlines()[0])
