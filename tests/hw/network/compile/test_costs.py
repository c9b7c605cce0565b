"""Costs that the planner plans with: bytes are those of the packets, cycles those of the units."""

import json

import pytest

from hw.network.commands import MatrixCommand
from hw.network.compile.compile import compile_network
from hw.network.compile.costs import Units, costs_of
from hw.network.compile.planning import planner_graph
from hw.network.graph.onnx_reader import read_network
from hw.network.matrix.config import MatrixConfig
from hw.network.matrix.timing import COMMAND_CYCLES, sweep_cycles
from hw.scheduler.check.check import check
from hw.scheduler.graph.documents import graph_to_json
from hw.scheduler.plan.documents import plan_to_json
from tests.support.networks.builder import Builder
from tests.support.networks.quantized import quantized


@pytest.fixture(scope="module")
def network():
    net = Builder("costs")
    x = net.conv(net.input("image", 1, 16, 24, 24), 80, name="wide", kernel=3)
    x = net.conv(x, 32, name="groups", kernel=3, groups=2)
    net.output(net.pool(x, name="pool", kernel=2, stride=2, padded=False))
    return read_network(quantized(net.model()))


@pytest.mark.parametrize("scratchpad_bytes", [1 << 17, 24576])
def test_a_plan_has_the_bytes_of_the_packets(network, scratchpad_bytes):
    """Each band reads all packets of its operator."""
    compiled = compile_network(network, scratchpad_bytes=scratchpad_bytes)
    plan, lowered = compiled.plan, compiled.lowered
    sizes = {operator.name: operator.weight_bytes for operator in plan.graph.operators}
    for step, commands in zip(plan.steps, lowered.commands, strict=True):
        passes = {command.weights for command in commands if isinstance(command, MatrixCommand)}
        assert sizes[step.operator] == sum(lowered.passes[each].nbytes for each in passes)
    assert plan.totals.parameter_bytes == sum(sizes.values()) > 0
    bands = len(plan.steps) - len(compiled.steps.steps)
    assert (bands > 0) == (scratchpad_bytes < 1 << 17)
    document = json.loads(plan_to_json(plan))
    graph = planner_graph(compiled.steps, costs_of(compiled.steps, Units()))
    model = json.loads(graph_to_json(graph))
    del model["format"]
    assert check(document, model=model) == []
    for key in ("weight_bytes", "least_cycles"):
        document["graph"]["operators"][0][key] += 1
        document["totals"]["parameter_bytes"] += key == "weight_bytes"
        document["steps"][0]["compute_cycles"] += key == "least_cycles"
        document["totals"]["predicted_cycles"] += key == "least_cycles"
        assert any(key in problem for problem in check(document, model=model))
        document = json.loads(plan_to_json(plan))


def test_a_step_takes_as_long_as_its_commands(network):
    compiled = compile_network(network, scratchpad_bytes=1 << 17)
    costs = costs_of(compiled.steps, Units())
    (wide,) = compiled.lowered.commands[0]
    output = compiled.steps.steps[0].output
    assert costs[output].cycles == sweep_cycles(wide, MatrixConfig()) + COMMAND_CYCLES + 3
    for step, planned in zip(compiled.steps.steps, compiled.plan.steps, strict=True):
        assert planned.compute_cycles >= costs[step.output].cycles > 0


def test_fewer_columns_and_ports_take_longer(network):
    steps = compile_network(network, scratchpad_bytes=1 << 17).steps
    cycles = [
        sum(cost.cycles for cost in costs_of(steps, units).values())
        for units in (Units(), Units(columns=32, lanes=32), Units(columns=32, lanes=32, lines=2))
    ]
    assert cycles[0] < cycles[1] <= cycles[2]
