"""Split networks on a CPU: what threads, another layout of pictures and torch.compile do for a
local update.

usage: python -m benchmarks.networks
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from time import perf_counter

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from mtcd.models.splitnet.nets import mlp, mvcnn, resnet18

WIDTH = 16
CASES: dict[str, tuple[Callable[[], nn.Module], tuple[int, ...]]] = {
    "mlp, 20 columns, B=64": (lambda: mlp((20,), WIDTH), (64, 20)),
    "mlp, 500 columns, 512 hidden, B=256": (lambda: mlp((500,), WIDTH, (512, 512)), (256, 500)),
    "mvcnn, one view of 64x64, B=64": (lambda: mvcnn((1, 64, 64), WIDTH), (64, 1, 64, 64)),
    "resnet18, quadrants, B=100": (lambda: resnet18(WIDTH), (100, 3, 16, 16)),
}


def stepper(net: nn.Module, x: Tensor) -> Callable[[], None]:
    """One local update: forward, backward, step."""
    head, y = nn.Linear(WIDTH, 10), torch.arange(len(x)) % 10
    optimiser = torch.optim.SGD(net.parameters(), lr=1e-3)

    def step() -> None:
        loss = cross_entropy(head(net(x)), y)
        gradients = torch.autograd.grad(loss, list(net.parameters()))
        for parameter, gradient in zip(net.parameters(), gradients, strict=True):
            parameter.grad = gradient
        optimiser.step()

    return step


def timed(step: Callable[[], None]) -> float:
    """Seconds of one, the best of five rounds; the first call is for getting ready."""
    step()
    began = perf_counter()
    step()
    count = max(1, int(0.5 / (perf_counter() - began)))
    rounds = []
    for _ in range(5):
        began = perf_counter()
        for _ in range(count):
            step()
        rounds.append((perf_counter() - began) / count)
    return min(rounds)


def main() -> None:
    """Print all."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.parse_args()
    cores = os.cpu_count() or 1
    print(
        f"{cores} cores, torch {torch.__version__}; ms per local update, in brackets how often it "
        f"is as fast"
    )
    for name, (make, shape) in CASES.items():
        torch.manual_seed(0)
        x = torch.randn(shape)
        torch.set_num_threads(1)
        floor = timed(stepper(make(), x))
        found = {"1 thread": floor}
        torch.set_num_threads(cores)
        found[f"{cores} threads"] = timed(stepper(make(), x))
        if len(shape) == 4:
            last = make().to(memory_format=torch.channels_last)  # type: ignore[call-overload]
            found["channels last"] = timed(
                stepper(last, x.contiguous(memory_format=torch.channels_last))
            )
        began = perf_counter()
        compiled = stepper(torch.compile(make()), x)  # type: ignore[arg-type]
        compiled()
        ready = perf_counter() - began
        found[f"compiled (ready after {ready:.0f} s)"] = timed(compiled)
        told = "   ".join(
            f"{way} {1e3 * took:.2f} ({floor / took:.2f}x)" for way, took in found.items()
        )
        print(f"{name:36} {told}", flush=True)


if __name__ == "__main__":
    main()
