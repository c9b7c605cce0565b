"""The planner's graph of a network's steps: each value as rows of granules, packets as weight bytes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from hw.network.compile.form import GRANULE
from hw.network.compile.steps import Step, Steps, Work
from hw.network.graph.network import AveragePool, Convolution, LayerNorm, MaxPool, Window
from hw.scheduler.graph.graph import Access, Graph, Operator, Tensor, TensorKind


@dataclass(frozen=True, kw_only=True)
class Cost:
    """Cycles and weight bytes of one step."""

    cycles: int  #: Cycles of its commands, one after the other.
    weight_bytes: int  #: Bytes of its packets, each once.


def held(steps: Steps) -> dict[str, tuple[str, ...]]:
    """Return the values that a step needs in the scratchpad beside those it reads, by the value it makes.

    Commands on tokens overlap: a step begins while those whose results it reads still read their own
    operands.  These must not have been given away, or the step would wait for their last reader.  A LayerNorm
    of 16 bits comes after that of 8 bits, which the next product reads.
    """
    network = steps.network
    if not any(isinstance(operator, LayerNorm) for operator in network.operators):
        return {}
    makers = {step.output: step for step in steps.steps}
    norms = {
        step.inputs[0]: step.output
        for step in steps.steps
        if isinstance(step.works[0].operator, LayerNorm) and steps.values[step.output].bits == 8
    }
    found = {}
    for step in steps.steps:
        others = [name for each in step.inputs if each in makers for name in makers[each].inputs]
        if isinstance(step.works[0].operator, LayerNorm):
            others += [name for name in (norms.get(step.inputs[0]),) if name and name != step.output]
        found[step.output] = tuple(name for name in dict.fromkeys(others) if name not in step.inputs)
    return found


def planner_graph(steps: Steps, costs: Mapping[str, Cost]) -> Graph:
    """Return the graph that the planner orders and places.

    A tensor has the shape ``(rows, bytes of a row)``: it is cut by rows.  ``costs``: of each step, by the
    value that it makes.
    """
    network = steps.network
    made = {step.output for step in steps.steps}
    used = [name for step in steps.steps for name in (*step.inputs, step.output)]
    others = held(steps)
    tensors = []
    for name in dict.fromkeys(used):
        form = steps.forms[name]
        kind = TensorKind.ACTIVATION if name in made else TensorKind.INPUT
        if name in network.outputs:
            kind = TensorKind.OUTPUT
        tensors.append(
            Tensor(
                name=name,
                size_bytes=form.size_bytes,
                shape=(form.rows, form.row_granules * GRANULE),
                kind=kind,
            )
        )
    operators = [
        Operator(
            name=step.output,
            kind=step.works[-1].operator.kind,
            inputs=(*step.inputs, *others.get(step.output, ())),
            outputs=(step.output,),
            macs=sum(_macs(steps, work) for work in step.works),
            least_cycles=costs[step.output].cycles,
            weight_bytes=costs[step.output].weight_bytes,
            accesses=_accesses(steps, step),
        )
        for step in steps.steps
    ]
    return Graph(name=network.name, tensors=tuple(tensors), operators=tuple(operators))


def row_window(steps: Steps, work: Work, name: str) -> Window | None:
    """Return the window by which a work reads an input; None where it reads one pixel for all."""
    form, output = steps.forms[name], steps.forms[work.output]
    operator = work.operator
    if isinstance(operator, Convolution) and name in operator.inputs:
        return operator.window if form.fold is None else form.fold.window
    if isinstance(operator, (MaxPool, AveragePool)):
        return operator.window
    return Window() if (form.rows, form.columns) == (output.rows, output.columns) else None


def _macs(steps: Steps, work: Work) -> int:
    if not isinstance(work.operator, Convolution):
        return 0
    height, width, _ = steps.values[work.operator.output].shape
    return height * width * work.operator.macs_of_pixel


def _accesses(steps: Steps, step: Step) -> dict[str, Access]:
    """Return the rows that a row of the output needs of each input; an input read in two ways is left out."""
    found: dict[str, Access | None] = {}
    for work in step.works:
        for name in work.inputs:
            window = row_window(steps, work, name)
            access = None
            if window is not None:
                span = (window.kernel[0] - 1) * window.dilations[0] + 1
                access = Access(kernel=span, stride=window.strides[0], pad=window.pads[0])
            found[name] = access if found.get(name, access) == access else None
    return {name: access for name, access in found.items() if access is not None}
