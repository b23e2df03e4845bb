"""Made-up results of experiments, in every shape that a figure can have."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from mtcd_experiments.results import CurveResult, Results, TrainedCurve
from mtcd_experiments.schema import Experiment

ITERATIONS, COST, RATIO = {"x": "iterations"}, {"x": "cost"}, {"x": "ratio"}
EPOCHS, BYTES = {"x": "epochs"}, {"x": "bytes"}
NOTE = "gisette-like, made from MNIST 4 against 9: not Gisette itself"
LONG = (
    "MTCD with a very long description of its settings, Γ=4 tokens, S=64 hops and combine: visitors"
)


def trained(
    rate: float, seed: int = 0, end: int = 20_000, server: float = 0.05, status: str = "converged"
) -> TrainedCurve:
    """A gap that falls like exp(-rate x), a little differently for each seed."""
    x = np.unique(np.concatenate([[0], np.geomspace(1, max(end, 1), 300).astype(int)]))[
        : None if end else 1
    ]
    rate *= 1 + 0.1 * np.sin(seed)
    gap = 20 * np.exp(-rate * x) * (1 + 0.1 * np.sin(x / 50 + seed))
    if status == "converged":
        x = x[: int(np.argmax(gap < 1e-6)) + 1] if (gap < 1e-6).any() else x
    columns = {
        "iteration": x,
        "gap": gap[: len(x)],
        "client_client": 1.0 * x,
        "client_server": server * x,
    }
    columns |= {"floats_client_client": 1000.0 * x, "floats_client_server": 500 * server * x}
    return TrainedCurve(
        seed,
        status,
        1e-5,
        1.5,
        {name: np.asarray(one, dtype=float) for name, one in columns.items()},
    )


def curve(
    label: str, rate: float, seeds: int = 5, tuned: bool = False, **settings: Any
) -> CurveResult:
    ones = tuple(trained(rate, seed, **settings) for seed in range(seeds))
    return CurveResult(
        label, ones, {1e-5: "1e-6 after 812", 1e-4: "diverged"} if tuned else None, at_edge=tuned
    )


def experiment(
    cases: dict[str, Any], curves: dict[str, Any], panels: list[dict[str, Any]], **more: Any
) -> Experiment:
    given = {
        "title": "Ridge regression over six networks",
        "about": "What is compared, and how.",
        "problem": {},
        "cases": {name: {"title": name, **case} for name, case in cases.items()},
        "curves": {
            name: {"label": name, "method": {"kind": "mtcd"}, **curve}
            for name, curve in curves.items()
        },
        "panels": panels,
        "quick": {"changes": {}},
    }
    return Experiment.model_validate(given | more)


def results(
    name: str, given: Experiment, make: Callable[[str, str], CurveResult], **more: Any
) -> Results:
    curves = {(case, name): make(case, name) for case in given.cases for name in given.shown(case)}
    return Results(name, given, curves, **({"seeds": 5, "quick": False, "ratio": 100.0} | more))


def plain(given: Experiment, **settings: Any) -> Callable[[str, str], CurveResult]:
    """Every curve a little faster than the one before."""
    rates = {name: 0.004 * 1.4**i for i, name in enumerate(given.curves)}
    return lambda case, name: curve(given.curves[name].label, rates[name], **settings)


def one_panel() -> Results:
    given = experiment({"path": {}}, {"mtcd": {}, "svfl": {}}, [ITERATIONS])
    return results("one-panel", given, plain(given, seeds=1), seeds=1)


def six_cases() -> Results:
    titles = {f"case{i}": {"title": f"({i}) Erdős-Rényi graph, p = 0.4, Γ = 2"} for i in range(6)}
    given = experiment(titles, {"stcd": {}, "dcpa": {}}, [ITERATIONS, COST], cases_per_row=2)
    return results("six-cases", given, plain(given), notes=(NOTE,))


def own_curves() -> Results:
    """Each case with its own curves; one stops early and never reaches the target, one does in some
    seeds."""
    cases = {
        "methods": {"curves": ["stcd", "s64", "dcpa", "svfl"]},
        "hops": {"curves": ["s64", "s256"]},
    }
    names: dict[str, Any] = {name: {} for name in ("stcd", "s64", "dcpa", "svfl", "s256")}
    given = experiment(cases, names, [ITERATIONS, COST, RATIO], lowest_gap=1e-6)

    def make(case: str, name: str) -> CurveResult:
        if name == "dcpa":
            return curve(name, 0.01, end=800, status="iterations")
        if name == "s256":
            return curve(name, 0.0061, end=2000, status="iterations")
        return plain(given)(case, name)

    return results("own-curves", given, make)


def ten_curves() -> Results:
    """Two families; some diverge, after many, two or no iterations."""
    names: dict[str, Any] = {
        f"g{tokens}{rule}": {"method": {"kind": "mtcd", "tokens": tokens, "combine": rule}}
        for rule in ("average", "visitors")
        for tokens in (1, 2, 4, 8)
    }
    names |= {"svfl": {"method": {"kind": "svfl"}}, "stcd": {"method": {"kind": "stcd"}}}
    given = experiment({"S1": {}, "S2": {}}, names, [ITERATIONS, COST])
    ends = {"g8visitors": 2, "g8average": 0, "g4visitors": 900}

    def make(case: str, name: str) -> CurveResult:
        if case == "S2" and name in ends:
            return curve(name, -0.005, end=ends[name], status="diverged")
        return plain(given, tuned=True)(case, name)

    return results("ten-curves", given, make, quick=True)


def long_labels() -> Results:
    names = {"x": {"label": LONG}, "y": {"label": f"{LONG}, twice"}, "z": {"label": LONG}}
    cases = {"a": {"curves": ["x", "y"]}, "b": {"curves": ["z"]}}
    given = experiment(cases, names, [ITERATIONS, RATIO], cases_per_row=2, title=f"{LONG} {LONG}")
    return results("long-labels", given, plain(given), notes=(f"{LONG}. {LONG}.",))


def three_costs() -> Results:
    panels = [{"x": "cost", "ratio": ratio, "title": f"{ratio} times"} for ratio in (20, 10, 5)]
    given = experiment({"path": {}}, {"mtcd": {}, "svfl": {}, "stcd": {}}, panels)
    return results("three-costs", given, plain(given, tuned=True))


def never_there() -> Results:
    given = experiment(
        {"path": {}}, {"mtcd": {}, "svfl": {}}, [RATIO, {"x": "iterations", "scale": "linear"}]
    )
    return results("never-there", given, plain(given, end=3, status="iterations"))


def nothing_moves() -> Results:
    given = experiment({"path": {}}, {"mtcd": {}, "svfl": {}}, [ITERATIONS, COST])
    return results("nothing-moves", given, plain(given, end=0, status="diverged"))


# ---- accuracies


def learnt(
    rate: float, seed: int = 0, epochs: int = 20, batches: int = 50, **messages: float
) -> TrainedCurve:
    """An accuracy that rises from 10% to 90%, a little differently for each seed; messages are
    those of a batch."""
    epoch = np.arange(epochs + 1.0)
    accuracy = 0.9 - 0.8 * np.exp(-rate * epoch) + 0.01 * np.sin(7 * epoch + seed) * (epoch > 0)
    between, server = messages.get("between", 0.0), messages.get("server", 8.0)
    columns = {
        "iteration": batches * epoch,
        "epoch": epoch,
        "test_accuracy": accuracy,
        "accuracy": accuracy + 0.05,
        "objective": 2.3 * np.exp(-rate * epoch),
        "client_client": between * batches * epoch,
        "client_server": server * batches * epoch,
        "floats_client_client": 1600 * between * batches * epoch,
        "floats_client_server": 1600 * server * batches * epoch,
    }
    return TrainedCurve(
        seed,
        "epochs",
        1e-4,
        60.0,
        {name: np.asarray(one, dtype=float) for name, one in columns.items()},
    )


def accuracies(
    seeds: int = 3, panels: Any = (EPOCHS, COST, BYTES), notes: Any = (), **more: Any
) -> Results:
    """SVFL and MTCD on CIFAR-10, as one would hope: the same per epoch, at three quarters of the
    cost."""
    given = experiment(
        {"cifar10": {"title": "4 clients in 2 clusters"}},
        {
            "svfl": {"label": "SVFL, Q=10", "method": {"kind": "svfl"}},
            "mtcd": {"label": "MTCD, Γ=2, S=2, Q=10"},
        },
        list(panels),
        **({"title": "ResNet18 on CIFAR-10", "measure": "accuracy", "target_accuracy": 0.8} | more),
    )
    messages = {"svfl": {"server": 8.0}, "mtcd": {"server": 6.0, "between": 4.0}}

    def make(case: str, name: str) -> CurveResult:
        ones = tuple(
            learnt(0.2, seed + 10 * (name == "mtcd"), **messages[name]) for seed in range(seeds)
        )
        return CurveResult(given.curves[name].label, ones)

    return results("cifar10", given, make, seeds=seeds, notes=notes)
