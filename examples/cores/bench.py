"""A test bench of stock cocotb for the examples: streams from ``vectors.json``, or a memory behind ``m_axi``.

Variables of the environment: ``VECTORS``, the folder of `examples.cores.vectors`; ``STALL``, the share of
cycles in which each side of a stream pauses; ``RESET_AT``, the cycle of a reset in the midst of work, 0 for
none; ``SEED``.
"""

import json
import os
import random
from itertools import repeat
from pathlib import Path
from typing import Any

import cocotb
from cocotb.clock import Clock
from cocotb.triggers import ClockCycles, ReadOnly, RisingEdge, SimTimeoutError, gather, with_timeout
from cocotbext.axi import AxiBus, AxiRam

_TOP = os.environ.get("COCOTB_TOPLEVEL")  # none outside of a simulator
_PERIOD_NS = 4
_LIMIT_NS = _PERIOD_NS * 50_000
#: Reset takes 4 cycles at least; streams may be valid at once, and wait.
_RESET_CYCLES = 4
_MEMORY_BYTES = 1 << 14


@cocotb.test(skip=_TOP == "add_one")
async def results_are_the_golden_model_s(dut: Any) -> None:
    """Feed every input with pauses, and compare every item that leaves."""
    vectors = json.loads(Path(os.environ["VECTORS"], "vectors.json").read_text())
    _start_clock(dut)
    await _reset(dut, vectors)
    if begun := int(os.environ.get("RESET_AT", "0")):
        tasks = [cocotb.start_soon(task) for task in _all(dut, vectors, {})]
        await ClockCycles(dut.clk, begun)
        for task in tasks:
            task.cancel()
        await _reset(dut, vectors)  # of all that was begun nothing may be left
    outputs: dict[str, list[int]] = {}
    try:
        await with_timeout(gather(*_all(dut, vectors, outputs)), _LIMIT_NS, "ns")
    except SimTimeoutError:
        done = {name: f"{len(found)} of {len(vectors['outputs'][name])}" for name, found in outputs.items()}
        raise AssertionError(f"the design stopped: {done}") from None
    for name, items in vectors["outputs"].items():
        wrong = [n for n, item in enumerate(items) if outputs[name][n] != int(item, 16)]
        cocotb.log.info("%s: %d items compared, %d differ", name, len(items), len(wrong))
        assert not wrong, f"results differ from the golden model's: {name}, {len(wrong)} items, {wrong[0]}"


@cocotb.test(skip=_TOP != "add_one")
async def ranges_are_copied_plus_one(dut: Any) -> None:
    """Carry out jobs of any address and length on a memory, and compare all of it."""
    rng = random.Random(os.environ.get("SEED", "0"))
    ram = AxiRam(AxiBus.from_prefix(dut, "m_axi"), dut.clk, dut.rst, size=_MEMORY_BYTES)
    content = bytearray(rng.randbytes(_MEMORY_BYTES))
    ram.write(0, bytes(content))
    stall = float(os.environ.get("STALL", "0"))
    for channel in (ram.write_if.aw_channel, ram.write_if.w_channel, ram.read_if.ar_channel):
        channel.set_pause_generator(rng.random() < stall for _ in repeat(0))
    for channel in (ram.write_if.b_channel, ram.read_if.r_channel):
        channel.set_pause_generator(rng.random() < stall for _ in repeat(0))
    jobs = [(rng.randrange(2048), 8192 + 1024 * n + rng.randrange(64), rng.randint(1, 400)) for n in range(6)]
    for source, target, length in jobs:
        moved = bytes((byte + 1) & 0xFF for byte in content[source : source + length])
        content[target : target + length] = moved
    _start_clock(dut)
    await _reset(dut, {"inputs": ["i_job"], "outputs": ["o_done"]})
    payloads = [length << 64 | target << 32 | source for source, target, length in jobs]
    done: list[int] = []
    both = gather(_send(dut, "i_job", payloads), _receive(dut, "o_done", len(jobs), done))
    await with_timeout(both, _LIMIT_NS, "ns")
    assert not any(done), "a job had an error"
    found = ram.read(0, _MEMORY_BYTES)
    wrong = [at for at in range(_MEMORY_BYTES) if found[at] != content[at]]
    cocotb.log.info("%d bytes compared, %d differ", _MEMORY_BYTES, len(wrong))
    assert not wrong, f"memory differs: {len(wrong)} bytes, the first at {wrong[0]:#x}"


def _start_clock(dut: Any) -> None:
    cocotb.start_soon(Clock(dut.clk, _PERIOD_NS, "ns").start())


async def _reset(dut: Any, vectors: dict[str, Any]) -> None:
    for name in vectors["inputs"]:
        getattr(dut, f"{name}_valid").value = 0
    for name in vectors["outputs"]:
        getattr(dut, f"{name}_ready").value = 0
    dut.rst.value = 1
    await ClockCycles(dut.clk, _RESET_CYCLES)
    dut.rst.value = 0


def _all(dut: Any, vectors: dict[str, Any], outputs: dict[str, list[int]]) -> list[Any]:
    """Return a coroutine for each stream; items that leave go to ``outputs``, by stream."""
    found = [_send(dut, name, [int(item, 16) for item in items]) for name, items in vectors["inputs"].items()]
    for name, items in vectors["outputs"].items():
        outputs[name] = []
        found.append(_receive(dut, name, len(items), outputs[name]))
    return found


async def _send(dut: Any, name: str, items: list[int]) -> None:
    """Offer items one by one; each stays until it is taken."""
    rng, stall = _pauses(name)
    valid, ready, payload = (getattr(dut, f"{name}_{part}") for part in ("valid", "ready", "payload"))
    for item in items:
        while rng.random() < stall:
            await RisingEdge(dut.clk)
        valid.value, payload.value = 1, item
        taken = False
        while not taken:
            await ReadOnly()
            taken = bool(ready.value)
            await RisingEdge(dut.clk)
        valid.value = 0


async def _receive(dut: Any, name: str, count: int, found: list[int]) -> None:
    """Take items; one must be defined in every bit."""
    rng, stall = _pauses(name)
    valid, ready, payload = (getattr(dut, f"{name}_{part}") for part in ("valid", "ready", "payload"))
    while len(found) < count:
        ready.value = rng.random() >= stall
        await ReadOnly()
        if valid.value and ready.value:
            found.append(int(payload.value))
        await RisingEdge(dut.clk)
    ready.value = 0


def _pauses(name: str) -> tuple[random.Random, float]:
    return random.Random(f"{os.environ.get('SEED', '0')} {name}"), float(os.environ.get("STALL", "0"))
