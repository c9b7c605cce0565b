"""A network layer by layer: each of its steps a launch of its own, whose operands pass through memory."""

from __future__ import annotations

from collections.abc import Iterator

from hw.network.compile.steps import Steps, steps_of
from hw.network.graph.network import Concat, Network


def layers(network: Network) -> Iterator[Network]:
    """Yield a network for each step, in order: operators that the kernel joins stay together."""
    steps = steps_of(network)
    owner = _owners(network, steps)
    for output in (step.output for step in steps.steps):
        operators = tuple(each for each in network.operators if owner.get(each.output) == output)
        if not operators:  # a copy that the compiler adds
            continue
        made = {each.output for each in operators}
        read = dict.fromkeys(name for each in operators for name in each.inputs if name not in made)
        inputs = tuple(name for name in read if name not in network.constants)
        yield Network(
            name=operators[-1].name,
            values={name: network.values[name] for name in (*read, *made)},
            operators=operators,
            inputs=inputs,
            outputs=(output,),
            constants={name: network.constants[name] for name in read if name in network.constants},
        )


def _owners(network: Network, steps: Steps) -> dict[str, str]:
    """Return the output of the step that each operator belongs to, by the operator's output."""
    found = {}
    for step in steps.steps:
        for work in step.works:
            for operator in (work.operator, work.sum, work.table):
                if operator is not None:
                    found[operator.output] = step.output
    outputs = {step.output for step in steps.steps}
    concats = [each for each in network.operators if isinstance(each, Concat)]
    # A concat without a step of its own belongs to that of the concat that reads it.
    for concat in reversed(concats):
        if concat.output in outputs:
            found[concat.output] = concat.output
        else:
            found[concat.output] = next(
                found[each.output] for each in concats if concat.output in each.inputs
            )
    return found
