"""The plan that comes with the engine: true in words of every width, and the one that the planner makes."""

import json

import pytest

from hw.scheduler.check.check import check
from hw.scheduler.default_plan import default_plan
from hw.scheduler.plan.documents import plan_to_json
from hw.scheduler.plan.options import ON_BOARD
from hw.scheduler.plan.plan import Direction, Mode
from hw.scheduler.plan_model import plan_model
from hw.scheduler.program.lower import lower


@pytest.mark.parametrize("word_bytes", [4, 16, 32, 64, 128])
def test_it_is_a_plan_in_every_word(word_bytes):
    plan = default_plan(word_bytes)
    assert plan.word_bytes == word_bytes
    assert check(json.loads(plan_to_json(plan))) == []
    program = lower(plan)
    assert program.word_bytes == word_bytes
    assert program.read_bytes == plan.totals.offchip_read_bytes
    assert program.write_bytes == plan.totals.offchip_write_bytes
    assert program.dataflow.name == "minilm_layer"


def test_it_uses_what_the_hardware_has():
    plan = default_plan(32)
    assert {stream.direction for stream in plan.streams} == set(Direction)
    assert {step.mode for step in plan.steps} == set(Mode)
    assert lower(plan).cores == 2


@pytest.mark.soak
def test_it_is_what_the_planner_makes():
    shipped = default_plan(128)
    made = plan_model("minilm_layer", "0.25M_R", word_bytes=128, objective=ON_BOARD)
    assert made.options == shipped.options
    assert made.totals.avoidable_bytes == shipped.totals.avoidable_bytes
    assert lower(made).dataflow.sources == lower(shipped).dataflow.sources
