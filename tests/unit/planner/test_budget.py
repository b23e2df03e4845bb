"""The clock of a plan counts what is computed, here and elsewhere, and not what is waited for."""

from __future__ import annotations

import sys
import time

import pytest

from mtcd.planner.budget import CpuClock, one_blas_thread


def test_waiting_costs_nothing_and_computing_does() -> None:
    clock = CpuClock()
    cpu = time.process_time()
    began = clock()
    time.sleep(0.3)
    waited = clock() - began
    assert waited <= time.process_time() - cpu
    assert waited < 0.2

    began = clock()
    cpu = time.process_time()
    while time.process_time() < cpu + 0.05:
        pass
    assert clock() - began >= 0.05


def test_what_a_worker_computes_counts_too() -> None:
    clock, other = CpuClock(), CpuClock()
    clock.add(100.0)
    clock.add(20.0)
    assert clock() - other() == pytest.approx(120.0, abs=1.0)


def test_blas_has_one_thread_meanwhile() -> None:
    threadpoolctl = pytest.importorskip("threadpoolctl")

    def most() -> int:
        blas = [one for one in threadpoolctl.threadpool_info() if one["user_api"] == "blas"]
        return max(one["num_threads"] for one in blas)

    with threadpoolctl.threadpool_limits(2, user_api="blas"):
        with one_blas_thread():
            assert most() == 1
        assert most() == 2


def test_a_plan_works_without_threadpoolctl(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "threadpoolctl", None)
    with one_blas_thread():
        pass
