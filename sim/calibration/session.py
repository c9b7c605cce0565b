"""The cocotb module of the calibration bench: every experiment of the plan, one after another."""

import json
from pathlib import Path
from typing import Any

import cocotb
from cocotb.triggers import FallingEdge, RisingEdge, SimTimeoutError, with_timeout

from sim.calibration.bench import MEMORY
from sim.calibration.experiment import ANSWER_FILE, PLAN_FILE
from sim.calibration.program import RESULT_WORDS
from sim.host.files import write_text
from sim.memory.view import MemoryView

_RESET_CYCLES = 4
_CLOCK_PS = 2000


@cocotb.test()
async def session(top: Any) -> None:
    """Run the plan in the working directory and write the results there."""
    folder = Path.cwd()
    answers = {}
    programmed: set[tuple[int, bool]] = set()
    top.write.value = 0
    top.go.value = 0
    await FallingEdge(top.clk)  # the memory is opened by an initial block
    view = MemoryView(MEMORY)
    for name, plan in json.loads((folder / PLAN_FILE).read_text()).items():
        top.rst_n.value = 0
        for _ in range(_RESET_CYCLES):
            await FallingEdge(top.clk)
        view.configure(plan["memory"])
        top.rst_n.value = 1
        wanted = {
            (int(port), writes): words
            for writes, kind in ((False, "reads"), (True, "writes"))
            for port, words in plan[kind].items()
        }
        for port, writes in programmed - wanted.keys():
            await _program(top, port, writes, [0] * len(next(iter(wanted.values()))))
        for (port, writes), words in wanted.items():
            await _program(top, port, writes, words)
        programmed = set(wanted)
        top.go.value = 1
        await FallingEdge(top.clk)
        top.go.value = 0
        await FallingEdge(top.clk)
        errors = []
        try:
            if top.busy.value == 1:
                await with_timeout(FallingEdge(top.busy), plan["max_cycles"] * _CLOCK_PS, "ps")
        except SimTimeoutError:
            errors.append(f"not finished after {plan['max_cycles']} cycles")
        answers[name] = {
            "reads": {port: await _result(top, int(port), False) for port in plan["reads"]},
            "writes": {port: await _result(top, int(port), True) for port in plan["writes"]},
            "counters": view.counters(),
            "errors": errors + view.errors(at_end=True),
        }
    write_text(folder / ANSWER_FILE, json.dumps(answers))


async def _program(top: Any, port: int, writes: bool, words: list[int]) -> None:
    top.write.value = 1
    top.port.value = port
    top.writes.value = int(writes)
    for word, value in enumerate(words):
        top.word.value = word
        top.value.value = value
        await FallingEdge(top.clk)
    top.write.value = 0


async def _result(top: Any, port: int, writes: bool) -> list[int]:
    top.port.value = port
    top.writes.value = int(writes)
    words = []
    for word in range(RESULT_WORDS):
        top.word.value = word
        await RisingEdge(top.clk)
        await FallingEdge(top.clk)
        words.append(int(top.result.value))
    return words
