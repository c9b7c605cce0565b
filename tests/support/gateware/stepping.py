"""Steps of Amaranth's simulator that run only processes whose inputs changed, without asking all others."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from amaranth.hdl._xfrm import LHSMaskCollector
from amaranth.sim import _pyrtl, pysim

_READY = "quick_ready"


class Process(_pyrtl.PyRTLProcess):
    """A compiled process that enters the list of those to run when it becomes runnable."""

    __slots__ = ("ready",)


def _wake(process: Process) -> None:
    if not process.runnable:
        process.runnable = True
        process.ready.append(process)


class Masks(LHSMaskCollector):
    """Bits that a process drives of each signal; -1 for all of them."""

    def masks(self) -> Iterator[tuple[Any, int]]:
        """List the signals with their bits."""
        for signal, mask in super().masks():
            yield signal, -1 if mask == (1 << len(signal)) - 1 else mask


def _comb_waker(process: Process) -> Callable[[int, int], bool]:
    def wake(before: int, after: int) -> bool:
        if not process.runnable:  # `_wake` without a call: every change of an input comes here
            process.runnable = True
            process.ready.append(process)
        return True

    return wake


def _edge_waker(process: Process, polarity: int) -> Callable[[int, int], bool]:
    def wake(before: int, after: int) -> bool:
        if after == polarity:
            _wake(process)
        return True

    return wake


def _memory_waker(process: Process) -> Callable[[], bool]:
    def wake() -> bool:
        _wake(process)
        return True

    return wake


def _run_wakers(wakers: list[Callable[..., bool]], *values: int) -> None:
    """Stand in for pysim's function of this name: nearly all wakers stay."""
    kept = [waker for waker in wakers if waker(*values)]
    if len(kept) != len(wakers):
        wakers[:] = kept


def _await_inputs(engine: Any) -> None:
    """List the processes that run at first, and share the list with all."""
    ready: list[Process] = []
    for process in engine._processes:
        if type(process) is Process:
            process.ready = ready
            if process.runnable:
                ready.append(process)
    setattr(engine, _READY, ready)


def install() -> None:
    """Let Amaranth's simulator step this way in this process."""
    engine = pysim.PySimEngine
    begin, reset, step = engine.__init__, engine.reset, engine.step_design

    def begin_listed(self: Any, design: Any) -> None:
        begin(self, design)
        _await_inputs(self)

    def reset_listed(self: Any) -> None:
        reset(self)
        _await_inputs(self)

    def step_listed(self: Any) -> None:
        if self._vcd_writers:
            step(self)
            getattr(self, _READY).clear()
            return
        ready, state, triggers = getattr(self, _READY), self._state, self._active_triggers
        others = [process for process in self._processes if type(process) is not Process]
        converged = False
        while not converged:
            for trigger in triggers:
                trigger.run()
            triggers.clear()
            for process in others:
                if process.runnable:
                    process.runnable = False
                    process.run()
            for process in ready:
                process.runnable = False
                process.run()
            ready.clear()
            converged = state.commit()
            self._delta_cycles += 1

    engine.__init__, engine.reset, engine.step_design = begin_listed, reset_listed, step_listed
    pysim._run_wakers = _run_wakers
    _pyrtl.PyRTLProcess, _pyrtl.LHSMaskCollector = Process, Masks
    _pyrtl.comb_waker, _pyrtl.edge_waker, _pyrtl.memory_waker = _comb_waker, _edge_waker, _memory_waker
