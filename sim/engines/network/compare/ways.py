"""Other ways to run a network with attention: other waits on the kernel, and parts between attentions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from hw.network.check.check import check
from hw.network.commands import Core
from hw.network.config import NetworkConfig
from hw.network.driver.tensors import model_inputs
from hw.network.graph.network import Attention, Network, Operator
from hw.network.program.barriers import finished_before
from hw.network.program.order import order
from hw.network.program.program import NetworkProgram


def attentions(network: Network) -> list[Attention]:
    """Return the attention operators of a network, in order."""
    return [each for each in network.operators if isinstance(each, Attention)]


def overlapping(program: NetworkProgram, config: NetworkConfig) -> NetworkProgram:
    """Return a program of barriers with the waits that it needs, checked."""
    found = order(program, config)
    check(found, config)
    return found


def in_turn(program: NetworkProgram, config: NetworkConfig) -> NetworkProgram:
    """Return a program of barriers with waits by which no two cores work at a time, checked.

    A command waits for all commands of other cores before it.  Commands of one core overlap as they may, and
    transfers are as early as they may be.
    """
    ordered = order(program, config, follows=())
    before = finished_before([step.command for step in program.steps])
    steps = tuple(
        replace(
            step,
            waits=tuple(
                needed if core == step.core else all_before
                for core, needed, all_before in zip(Core, step.waits, counts, strict=True)
            ),
        )
        for step, counts in zip(ordered.steps, before, strict=False)
    )
    found = replace(ordered, steps=steps)
    check(found, config)
    return found


def parts(network: Network) -> list[Network]:
    """Return the parts of a network between its attentions, in order."""
    return [_part(network, operators) for operators in _between(network)]


def _between(network: Network) -> Iterator[Sequence[Operator]]:
    """Yield the operators between attentions."""
    found: list[Operator] = []
    for operator in network.operators:
        if not isinstance(operator, Attention):
            found.append(operator)
        elif found:
            yield found
            found = []
    if found:
        yield found


def _part(network: Network, operators: Sequence[Operator]) -> Network:
    made = {each.output for each in operators}
    others = [each for each in network.operators if each.output not in made]
    needed = {name for each in others for name in each.inputs} | {*network.outputs}
    read = dict.fromkeys(name for each in operators for name in each.inputs if name not in made)
    inputs = tuple(name for name in read if name not in network.constants)
    tensors = tuple(each for each in network.model_inputs if each.value in inputs)
    part = Network(
        name=operators[-1].name,
        values={name: network.values[name] for name in (*read, *made)},
        operators=tuple(operators),
        inputs=inputs,
        outputs=tuple(each.output for each in operators if each.output in needed),
        constants={name: network.constants[name] for name in read if name in network.constants},
    )
    # Values between parts are the network's own integers.
    known = {each.value for each in tensors}
    stored = tuple(replace(each, real=False) for each in model_inputs(part) if each.value not in known)
    return replace(part, model_inputs=(*tensors, *stored))
