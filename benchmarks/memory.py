"""Peak memory of a training against the size of X, each in a process of its own."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path


def peak() -> float:
    """The most memory this process has held, in MB (Linux). getrusage would count its parent's
    too."""
    status = Path("/proc/self/status").read_text()
    return int(re.findall(r"VmHWM:\s+(\d+) kB", status)[0]) / 1024


def measure(kind: str, method: str) -> None:
    """Make the data, train, print sizes in MB."""
    import mtcd
    from mtcd.training.train import train

    base = peak()
    data = mtcd.synthetic(kind, 10_000, 4000, 40)
    size = sum(block.nbytes for block in data.blocks) / 2**20
    made = peak()
    methods = {
        "STCD": mtcd.STCD(local_updates=20, stepsize=1e-7),
        "MTCD": mtcd.MTCD(tokens=4, hops=40, local_updates=20, stepsize=1e-7),
        "SVFL": mtcd.SVFL(local_updates=5, stepsize=1e-7),
        "mini": mtcd.MTCD(tokens=4, hops=40, local_updates=2, stepsize=1e-7, batch=100),
    }
    model = mtcd.Glm("ridge", alpha=1.0) if kind == "ridge" else mtcd.Glm("logistic", l1=1.0)
    train(
        data, model, "path", methods[method], mtcd.Stop(iterations=400 if method != "SVFL" else 3)
    )
    print(
        f"{kind:9} {method}: X {size:6.0f} MB   making it {(made - base) / size:5.2f} X   "
        f"training as well {(peak() - base) / size:5.2f} X"
    )


def main() -> None:
    """A line per case; 1 X is the data itself."""
    for kind, method in (
        ("ridge", "STCD"),
        ("ridge", "MTCD"),
        ("ridge", "SVFL"),
        ("logistic", "STCD"),
        ("logistic", "mini"),
    ):
        subprocess.run([sys.executable, "-m", "benchmarks.memory", kind, method], check=True)


if __name__ == "__main__":
    measure(*sys.argv[1:]) if len(sys.argv) == 3 else main()
