"""Inputs of the scheduler's simulation: a plan or a frozen program, and sources."""

import json

import numpy as np
import pytest

from hw.board import load_board
from hw.errors import InputError
from hw.scheduler.config import SchedulerConfig, frozen
from hw.scheduler.default_plan import default_plan
from hw.scheduler.engine import SchedulerEngine
from hw.scheduler.plan.documents import plan_to_json
from hw.scheduler.program.image import encode
from hw.scheduler.program.lower import lower
from sim.engines.scheduler.adapter import ADAPTER, PLAN
from tests.support.planner.graphs import pipelined_graph
from tests.support.planner.naive_plan import naive_plan
from tests.support.program.example import example_program

BOARD = load_board("u55c")
CONFIG = SchedulerConfig()


def small_plan():
    return naive_plan(pipelined_graph(), 4 * 1024 + 512)


def test_a_plan_is_lowered_and_its_image_lies_in_memory():
    plan = small_plan()
    job = ADAPTER.job({PLAN: np.array(plan, object)}, CONFIG)
    program = lower(plan)
    launch = ADAPTER.launch(job, CONFIG, BOARD)
    region, image = launch.buffers
    assert (region.argument, image.argument) == ("memory", "program")
    assert image.data.tobytes() == encode(program)
    assert not image.output
    assert launch.scalars == {"program_records": len(encode(program)) // 32}
    predicted = SchedulerEngine().predict(ADAPTER.workload(job, CONFIG), CONFIG, BOARD)
    assert predicted.read_bytes_total == plan.totals.offchip_read_bytes + len(encode(program))
    assert predicted.cycles["cycles_stall_load"] > launch.scalars["program_records"]
    used = program.scratchpad_words * 32 / 1024
    assert ADAPTER.label(job, CONFIG) == f"{plan.graph.name}, {used:,.5g} KiB of scratchpad used"


def test_without_a_plan_the_shipped_one_is_executed():
    assert ADAPTER.job({}, CONFIG).program == lower(default_plan(32))


def test_a_frozen_program_needs_no_image():
    program = example_program(32)
    config = frozen(program)
    job = ADAPTER.job({}, config)
    assert job.program is program
    launch = ADAPTER.launch(job, config, BOARD)
    assert [buffer.argument for buffer in launch.buffers] == ["memory"]
    assert launch.scalars == {}
    predicted = SchedulerEngine().predict(ADAPTER.workload(job, config), config, BOARD)
    assert predicted.read_bytes_total == program.read_bytes
    assert predicted.cycles["cycles_stall_load"] == 0
    with pytest.raises(InputError, match="plan must be left out: the program of this kernel is frozen"):
        ADAPTER.job({PLAN: np.array(small_plan(), object)}, config)


def test_a_plan_too_large_for_the_hardware_is_refused():
    with pytest.raises(InputError, match="steps of the program must be at most 1, the max_steps of the hard"):
        ADAPTER.job({PLAN: np.array(small_plan(), object)}, SchedulerConfig(max_steps=1))


def test_a_plan_that_is_not_true_is_refused(tmp_path):
    path = tmp_path / "plan.json"
    path.write_text(plan_to_json(small_plan()))
    assert ADAPTER.read_files({"plan": path}, CONFIG, seed=0)[PLAN].item() == small_plan()
    document = json.loads(path.read_text())
    document["totals"]["avoidable_bytes"] += 32
    path.write_text(json.dumps(document))
    with pytest.raises(InputError, match=r"plan must be true: .*avoidable_bytes"):
        ADAPTER.read_files({"plan": path}, CONFIG, seed=0)


def test_given_sources_are_used_and_others_are_random_by_seed():
    config = frozen(example_program(32))
    x = np.arange(96 * 32, dtype=np.uint8)
    one, same, other = (ADAPTER.job({"x": x, "seed": np.asarray(seed)}, config) for seed in (1, 1, 2))
    assert one.content[: x.size].tobytes() == x.tobytes()
    assert (one.content == same.content).all()
    assert (one.content != other.content).any()


@pytest.mark.parametrize(
    ("tensors", "message"),
    [
        ({"y": np.zeros(4)}, "tensor name must be seed or a source of the network: x, w, not 'y'"),
        ({"x": np.zeros(4)}, "bytes of tensor x must be 3072, not 32"),
        ({"seed": np.asarray(-1)}, r"seed must be one whole number from 0 to 2\^32 - 1"),
        ({"seed": np.asarray(0.5)}, "seed must be one whole number"),
    ],
)
def test_wrong_tensors(tensors, message):
    with pytest.raises(InputError, match=message):
        ADAPTER.job(tensors, frozen(example_program(32)))
