"""The cocotb module around kernel calls: as XRT would, through registers and memory and nothing else.

It runs inside the simulator's process, in the folder that holds the plan.  Memory is filled and read through
NumPy views onto the models' stores; between start and interrupt Python sleeps on one signal.
"""

import hashlib
import time
from pathlib import Path
from typing import Any

import cocotb
import numpy as np
from cocotb.triggers import FallingEdge, RisingEdge
from numpy.typing import NDArray

from sim.bench.lite import LiteManager
from sim.bench.plan import GUARD_BYTES, Answer, BenchPlan, Call, PlacedBuffer
from sim.memory.view import MemoryView

_CONTROL, _GLOBAL_INTERRUPT, _INTERRUPT_ENABLE, _INTERRUPT_STATUS = 0x00, 0x04, 0x08, 0x0C
_START, _DONE, _IDLE = 1, 2, 4
_RESET_CYCLES = 16
#: Bytes that no kernel is likely to write by accident, and content of an output buffer before the call.
_GUARD, _UNWRITTEN = 0xA5, 0xC3


@cocotb.test()
async def kernel_calls(top: Any) -> None:
    """Carry out the plan in the working directory and leave the answer there."""
    folder = Path.cwd()
    plan = BenchPlan.load(folder)
    top.cycle_limit.value = 0
    top.rst_n.value = 0
    registers = LiteManager(top)
    await FallingEdge(top.clk)  # the memories open in `initial` blocks
    memories = {name: MemoryView(name) for name in plan.memories}
    _fill(plan, memories, folder)

    began = time.monotonic()
    for _ in range(_RESET_CYCLES):
        await FallingEdge(top.clk)
    top.rst_n.value = 1
    await FallingEdge(top.clk)

    assert await registers.read(_CONTROL) & _IDLE, "the kernel is not idle after reset"
    await registers.write(_GLOBAL_INTERRUPT, 1)
    await registers.write(_INTERRUPT_ENABLE, 1)
    counted: list[None] = []
    resets = cocotb.start_soon(_count(FallingEdge(top.rst_n), counted))
    calls = [await _call(top, registers, memories, plan, number) for number in range(len(plan.calls))]
    resets.cancel()
    simulated = int(top.cycle.value)
    seconds = time.monotonic() - began
    Answer(
        calls=calls,
        resets_between_calls=len(counted),
        cycles_simulated=simulated,
        simulation_seconds=seconds,
        memories={name: view.counters() for name, view in memories.items()},
        violations=(
            *(f"{name}: {text}" for name, view in memories.items() for text in view.errors(at_end=True)),
            *_collect(plan, memories, folder),
        ),
    ).save(folder)


async def _count(trigger: FallingEdge, seen: list[None]) -> None:
    """Note every time that ``trigger`` fires."""
    while True:
        await trigger
        seen.append(None)


async def _call(
    top: Any, registers: LiteManager, memories: dict[str, MemoryView], plan: BenchPlan, number: int
) -> Call:
    """Carry out one call."""
    for offset, value in plan.calls[number]:
        await registers.write(offset, value)
    for call, memory, port, write, skip in plan.refusals:
        if call == number:
            memories[memory].refuse(port, write=write, skip=skip)
    top.cycle_limit.value = int(top.cycle.value) + plan.cycle_limit
    started = await registers.write(_CONTROL, _START)
    if top.finished.value != 1:
        await RisingEdge(top.finished)
    done = int(top.cycle.value)
    if top.interrupt.value != 1:
        states = "; ".join(text for view in memories.values() for text in view.errors())
        raise AssertionError(
            f"the kernel did not finish in {plan.cycle_limit} cycles ({states or 'no AXI rule was broken'})"
        )
    await registers.write(_INTERRUPT_STATUS, 1)
    assert await registers.read(_CONTROL) & _DONE, (
        "the interrupt came, but the kernel does not say it is done"
    )
    await FallingEdge(top.clk)
    assert top.interrupt.value == 0, "the interrupt stays after its status was cleared"
    counters = {
        name: await registers.read(offset) | await registers.read(offset + 4) << 32
        for name, offset in plan.counters.items()
    }
    digests = {
        buffer.argument: hashlib.sha256(
            memories[buffer.memory].array(buffer.address, buffer.size_bytes).data
        ).hexdigest()
        for buffer in plan.buffers
        if buffer.output and len(plan.calls) > 1
    }
    return Call(counters=counters, cycles_start_to_done=done - started, digests=digests)


def _guards(buffer: PlacedBuffer, view: MemoryView) -> tuple[NDArray[np.uint8], NDArray[np.uint8]]:
    end = buffer.address + buffer.size_bytes
    return view.array(buffer.address - GUARD_BYTES, GUARD_BYTES), view.array(end, GUARD_BYTES)


def _fill(plan: BenchPlan, memories: dict[str, MemoryView], folder: Path) -> None:
    for buffer in plan.buffers:
        view = memories[buffer.memory]
        for guard in _guards(buffer, view):
            guard[:] = _GUARD
    for buffer in plan.buffers:
        store = memories[buffer.memory].array(buffer.address, buffer.size_bytes)
        file = folder / buffer.file
        # A buffer may be both: placed, and read back after the kernel wrote into it.
        if file.exists():
            store[:] = np.load(file)
        elif buffer.output:
            store[:] = _UNWRITTEN


def _collect(plan: BenchPlan, memories: dict[str, MemoryView], folder: Path) -> list[str]:
    """Save the output buffers, and name illegal writes."""
    violations = []
    for buffer in plan.buffers:
        view = memories[buffer.memory]
        store = view.array(buffer.address, buffer.size_bytes)
        if buffer.output:
            np.save(folder / buffer.file, store)
        elif (folder / buffer.file).exists() and not np.array_equal(store, np.load(folder / buffer.file)):
            violations.append(f"the kernel wrote into its input {buffer.argument}")
        for side, guard in zip(("before", "after"), _guards(buffer, view), strict=True):
            touched = np.flatnonzero(guard != _GUARD)
            if touched.size:
                where = (
                    f"last {GUARD_BYTES - int(touched[-1])} bytes ahead of it"
                    if side == "before"
                    else f"first {int(touched[0])} bytes past it"
                )
                violations.append(f"the kernel wrote {side} its buffer {buffer.argument}, {where}")
    return violations
