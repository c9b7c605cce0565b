"""Steps of Amaranth's simulator that run only processes whose inputs changed, without asking all others."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from amaranth.hdl._xfrm import LHSMaskCollector
from amaranth.sim import _pyrtl, pysim

_READY, _OTHERS = "quick_ready", "quick_others"


class Process(_pyrtl.PyRTLProcess):
    """A compiled process that enters the list of those to run when it becomes runnable."""

    __slots__ = ("ready",)

    def __call__(self, *change: int) -> bool:
        """Become runnable, as a waker; it stays one."""
        if not self.runnable:
            self.runnable = True
            self.ready.append(self)
        return True


class Edge:
    """The waker of all processes that run at one edge of a clock."""

    def __init__(self, process: Process, polarity: int) -> None:
        self.processes = [process]
        self.polarity = polarity

    def __call__(self, before: int, after: int) -> bool:
        """Make the processes runnable if the change is this edge."""
        if after == self.polarity:
            for process in self.processes:
                process()
        return True


class State(pysim._PySignalState):
    """The state of a signal; ``readers`` are the processes without a clock that it is an input of."""

    __slots__ = ("readers",)

    def __init__(self, signal: Any, pending: set[Any]) -> None:
        super().__init__(signal, pending)
        self.readers: list[Process] = []

    def add_waker(self, waker: Any) -> None:
        """Take processes as readers, and those of one edge as one waker."""
        if type(waker) is Process:
            self.readers.append(waker)
            return
        if type(waker) is Edge:
            for known in self.wakers:
                if type(known) is Edge and known.polarity == waker.polarity:
                    known.processes += waker.processes
                    return
        self.wakers.append(waker)

    def commit(self) -> bool:
        """Take the next value and tell whether it is another."""
        before, after = self.curr, self.next
        if before == after:
            return False
        for process in self.readers:
            if not process.runnable:  # a call less: every change of an input comes here
                process.runnable = True
                process.ready.append(process)
        if self.wakers:
            _run_wakers(self.wakers, before, after)
        self.curr = after
        return True


class Masks(LHSMaskCollector):
    """Bits that a process drives of each signal; -1 for all of them."""

    def masks(self) -> Iterator[tuple[Any, int]]:
        """List the signals with their bits."""
        for signal, mask in super().masks():
            yield signal, -1 if mask == (1 << len(signal)) - 1 else mask


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


def _others(engine: Any) -> list[Any]:
    """Return the processes that are not compiled: the clocks, and those that are added later."""
    count, others = engine.__dict__.get(_OTHERS, (0, []))
    if count != len(engine._processes):
        others = [process for process in engine._processes if type(process) is not Process]
        setattr(engine, _OTHERS, (len(engine._processes), others))
    return others


def _step(engine: Any) -> None:
    """Stand in for ``PySimEngine.step_design``, without waveforms."""
    ready, others = getattr(engine, _READY), _others(engine)
    triggers, pending = engine._active_triggers, engine._state.pending
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
        converged = True
        for state in pending:
            if state.commit():
                converged = False
        pending.clear()
        engine._delta_cycles += 1


def _advance(engine: Any) -> bool:
    """Stand in for ``PySimEngine.advance``: no compiled process keeps a simulation going."""
    engine.step_design()
    converged = False
    while not converged:
        converged = True
        for testbench in engine._testbenches:
            if testbench.runnable:
                testbench.runnable = False
                testbench.run()
                converged = False
    engine._state.timeline.advance()
    for testbench in engine._testbenches:
        if testbench.critical:
            return True
    return any(other.critical for other in _others(engine))


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
        _step(self)

    engine.__init__, engine.reset, engine.step_design = begin_listed, reset_listed, step_listed
    engine.advance = _advance
    pysim._run_wakers, pysim._PySignalState = _run_wakers, State
    _pyrtl.PyRTLProcess, _pyrtl.LHSMaskCollector = Process, Masks
    _pyrtl.comb_waker = _pyrtl.memory_waker = lambda process: process
    _pyrtl.edge_waker = Edge
