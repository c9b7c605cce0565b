"""The simulation side of the test engine vadd."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from types import ModuleType

import numpy as np
import pytest

from hw.errors import InputError
from hw.registry import ENGINES
from sim.run.adapter import Buffer, Case, EngineAdapter, Launch
from tests.support.vadd import VaddWorkload


class VaddAdapter(EngineAdapter):
    """c = a + b; ``wrong`` makes the golden model differ in that element."""

    name = "vadd"

    def __init__(self, wrong: int | None = None) -> None:
        self.wrong = wrong

    def job(self, tensors, config):
        if tensors["a"].shape != tensors["b"].shape:
            raise InputError("shape of b", tensors["b"].shape, f"{tensors['a'].shape}, that of a")
        return tensors

    def launch(self, job, config, board):
        inputs = (
            Buffer(argument=name, data=job[name].view(np.uint8), size_bytes=job[name].nbytes) for name in "ab"
        )
        output = Buffer(argument="c", data=None, size_bytes=job["a"].nbytes, output=True)
        return Launch(scalars={"words": job["a"].size}, buffers=(*inputs, output))

    def golden(self, job, config):
        c = job["a"] + job["b"]
        if self.wrong is not None:
            c[self.wrong] += 1
        return {"c": c}

    def outputs(self, job, config, buffers):
        return {"c": buffers["c"].view(np.int32)}

    def results(self, job, config, integers):
        return {"c": integers["c"].astype(np.float64)}

    def errors(self, job, config, integers):
        return {"relative_rms_error": 0.0}

    def workload(self, job, config):
        return VaddWorkload(words=job["a"].size)

    def cases(self) -> Iterator[Case]:
        return iter(())


def register_vadd(monkeypatch: pytest.MonkeyPatch, adapter: VaddAdapter) -> None:
    """Make ``vadd`` an engine like any other for the length of a test."""
    module = ModuleType("sim.engines.vadd.adapter")
    module.ADAPTER = adapter
    monkeypatch.setitem(ENGINES, "vadd", "tests.support.vadd:VaddEngine")
    monkeypatch.setitem(sys.modules, "sim.engines.vadd", ModuleType("sim.engines.vadd"))
    monkeypatch.setitem(sys.modules, "sim.engines.vadd.adapter", module)
