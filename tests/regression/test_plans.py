"""Real networks planned, checked, lowered and executed in the generated RTL: bytes, data and cycles."""

import functools

import numpy as np
import pytest

from hw.board import load_board
from hw.scheduler.engine import SchedulerEngine
from hw.scheduler.plan.options import CRITERIA, OrderChoice, When
from hw.scheduler.plan.plan import Direction, Mode
from hw.scheduler.plan_model import plan_model
from sim.plans.commands import PLAN
from sim.run.run import run

#: Largest relative error of a plan's cycles against the RTL's.
TOLERANCE = 0.03
#: The memory may be refreshing when the program is loaded.
LOAD_TOLERANCE_CYCLES = 120
NO_STREAMS = {"streaming": When.NEVER}
WHOLE_OPERATORS = {"tiling": When.NEVER, "pipelining": When.NEVER}
FEWEST_BYTES = {"objective": CRITERIA}
#: Spares the search, and leaves more to be moved.
AS_LISTED = {"order": OrderChoice.DEFAULT}

#: Network, scratchpad, options, features that the plan must have, whether it runs in the soak only.
PLANS = {
    "pipelined": (
        "minilm_layer",
        "0.25M_R",
        {"tiling": When.NEVER},
        {"pipelined", "streams", "written through"},
        False,
    ),
    "spills": ("rw40", "M_R", NO_STREAMS | WHOLE_OPERATORS | AS_LISTED, {"spills", "early fetches"}, True),
    "fewer_spills": ("rw40", "M_R", NO_STREAMS | WHOLE_OPERATORS, {"spills", "early fetches"}, True),
    "minilm": ("minilm_layer", "M_H", {}, {"nothing avoidable"}, True),
    "resnet18": ("resnet18", "M_H", {}, {"nothing avoidable"}, True),
    "inception": ("inception_v1", "M_H", {}, {"nothing avoidable"}, True),
    "bands": ("unet", "0.5M_R", FEWEST_BYTES, {"bands", "spills"}, True),
    "more_bands": ("resnet18", "0.5M_R", FEWEST_BYTES, {"bands", "spills", "early fetches"}, True),
    "streams": ("minilm_layer", "0.25M_R", WHOLE_OPERATORS, {"streams", "written through"}, True),
}


def features(plan):
    """The planner's techniques that a plan uses."""
    fetches = [
        transfer
        for transfer in plan.transfers
        if transfer.direction is Direction.READ and transfer.episode is not None
    ]
    kinds = {tensor.name: tensor.kind.value for tensor in plan.graph.tensors}
    found = {
        "pipelined": any(step.mode is Mode.PIPELINED for step in plan.steps),
        "bands": any(tensor.origin for tensor in plan.graph.tensors),
        "streams": any(stream.direction is Direction.READ for stream in plan.streams),
        "written through": any(stream.direction is Direction.WRITE for stream in plan.streams),
        "early fetches": any(fetch.start_step < fetch.deadline_step for fetch in fetches),
        "spills": any(
            transfer.direction is Direction.WRITE and kinds[transfer.tensor] == "activation"
            for transfer in plan.transfers
        ),
        "nothing avoidable": plan.totals.avoidable_bytes == 0,
    }
    return {name for name, there in found.items() if there}


@functools.cache
def planned(name):
    model, scratchpad, options, *_ = PLANS[name]
    return plan_model(model, scratchpad, board=load_board("u55c"), **options)


@pytest.mark.sample(1)
@pytest.mark.parametrize(
    ("name", "memory"),
    [
        pytest.param(name, memory, marks=[pytest.mark.soak] if soak else [])
        for name, (*_, soak) in PLANS.items()
        for memory in ("model", "jitter")
    ],
)
def test_the_rtl_keeps_what_the_plan_promises(name, memory, tmp_path):
    *_, wanted, _ = PLANS[name]
    board = load_board("u55c")
    plan = planned(name)
    assert wanted <= features(plan)
    result = run(
        "scheduler",
        SchedulerEngine().default_config(board),  # one kernel executes them all
        board,
        {PLAN: np.array(plan, object), "seed": np.asarray(len(memory))},
        seed=3,
        memory_mode=memory,
        directory=tmp_path,
    )
    assert result.bit_exact, result.mismatches
    (port,) = result.report.traffic.ports
    loaded = result.report.details["program_bytes"]
    assert port.useful_read_bytes - loaded == plan.totals.offchip_read_bytes
    assert port.useful_write_bytes == plan.totals.offchip_write_bytes
    if memory == "model":  # whose time is the board's
        counted = result.report.cycles
        loading = counted.cycles_stall["load"]
        cycles = counted.cycles_total - loading
        assert abs(plan.totals.predicted_cycles - cycles) <= TOLERANCE * cycles
        assert abs(result.report.details["predicted_load_cycles"] - loading) <= LOAD_TOLERANCE_CYCLES
