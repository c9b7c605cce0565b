"""From a quantized network to a certified plan and all that one kernel needs to run it."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

from hw.board import Board
from hw.errors import InputError
from hw.network.compile.bands import Band
from hw.network.compile.costs import Units, costs_of
from hw.network.compile.form import GRANULE, WORD_BYTES
from hw.network.compile.lower import Lowered, Lowering
from hw.network.compile.planning import held, planner_graph
from hw.network.compile.steps import Steps, steps_of
from hw.network.graph.network import Network, Product, Sum
from hw.network.graph.products import product_rule
from hw.network.graph.sums import sum_rule
from hw.scheduler.plan.options import When
from hw.scheduler.plan.plan import Plan


@dataclass(frozen=True, kw_only=True, eq=False)
class Compiled:
    """A network, its plan, and its commands."""

    network: Network
    steps: Steps
    plan: Plan
    lowered: Lowered  #: Commands of each step of the plan.

    @property
    def unequal_pairs(self) -> dict[str, int]:
        """Pairs of bytes, of 65,536, whose result is not onnxruntime's, by the sum or product with any."""
        values, found = self.network.values, {}
        for operator in self.network.operators:
            if isinstance(operator, (Sum, Product)):
                first, second, result = (values[name] for name in (*operator.inputs, operator.output))
                found[operator.name] = (
                    sum_rule(first, second, result, last=operator.last).unequal
                    if isinstance(operator, Sum)
                    else product_rule(first, second, result).unequal
                )
        return {name: pairs for name, pairs in found.items() if pairs}


def compile_network(
    network: Network,
    *,
    scratchpad_bytes: int,
    columns: int = 64,
    lanes: int = 64,
    lines: int = 1,
    board: Board | None = None,
    **options: Any,
) -> Compiled:
    """Plan and lower a network.

    ``columns``: of the matrix array. ``lanes``, ``lines``: see `hw.network.compile.costs.Units`.
    ``options``: further fields of
    `hw.scheduler.plan.options.PlanOptions`. Raises `InputError` when no plan exists.
    """
    # The planner takes half a second to import; a plan that was made before needs none.
    from hw.scheduler.plan_model import plan_model

    steps = steps_of(network)
    units = Units(columns=columns, lanes=lanes, lines=lines)
    plan = plan_model(
        planner_graph(steps, costs_of(steps, units)),
        str(scratchpad_bytes),
        board=board,
        word_bytes=WORD_BYTES,
        streaming=When.NEVER,
        pipelining=When.NEVER,
        **options,
    )
    lowered = _lower(steps, plan, columns)
    return Compiled(network=network, steps=steps, plan=plan, lowered=lowered)


def _lower(steps: Steps, plan: Plan, columns: int) -> Lowered:
    by_output = {step.output: step for step in steps.steps}
    operators = {operator.name: operator for operator in plan.graph.operators}
    firsts = _first_rows(plan)
    lowering = Lowering(steps, columns=columns)
    for number, planned in enumerate(plan.steps):
        operator = operators[planned.operator]
        placed = {
            episode.tensor: Band(
                first=firsts[episode.tensor],
                last=firsts[episode.tensor] + plan.graph.tensor[episode.tensor].shape[0],
                address=episode.address // GRANULE,
            )
            for episode in plan.episodes
            if episode.first_step <= number <= episode.last_step
        }
        inputs: dict[str, list[Band]] = {}
        for name in operator.inputs:
            inputs.setdefault(plan.graph.tensor[name].origin or name, []).append(placed[name])
        (output,) = operator.outputs
        step = by_output[plan.graph.tensor[output].origin or output]
        lowering.add(step, dict(inputs), placed[output])
    return lowering.lowered()


def _first_rows(plan: Plan) -> dict[str, int]:
    """Return the first row of each tensor in the value that it is a band of."""
    found, reached = {}, dict[str, int]()
    for tensor in plan.graph.tensors:
        first = reached.get(tensor.origin, 0) if tensor.origin else 0
        found[tensor.name] = first
        if tensor.origin:
            reached[tensor.origin] = first + tensor.shape[0]
    return found


def lower_plan(network: Network, plan: Plan, *, columns: int) -> Compiled:
    """Lower a network by a plan that was made before; raises `InputError` for a plan of another network."""
    steps = steps_of(network)
    _check_plan(steps, plan)
    return Compiled(network=network, steps=steps, plan=plan, lowered=_lower(steps, plan, columns))


def _check_plan(steps: Steps, plan: Plan) -> None:
    """Compare the values of a plan, and its operators' operands, with a network's."""
    wrong = InputError("plan", plan.graph.name, f"of the network {steps.network.name}: it is of another one")
    if plan.word_bytes != WORD_BYTES or any(len(tensor.shape) != 2 for tensor in plan.graph.tensors):
        raise wrong
    rows: Counter[tuple[str, int]] = Counter()
    origins = {tensor.name: tensor.origin or tensor.name for tensor in plan.graph.tensors}
    for tensor in plan.graph.tensors:
        height, width = tensor.shape
        rows[origins[tensor.name], width] += height
    used = {name for step in steps.steps for name in (*step.inputs, step.output)}
    forms = {name: steps.forms[name] for name in used}
    if rows != {(name, form.row_granules * GRANULE): form.rows for name, form in forms.items()}:
        raise wrong
    found = {
        (
            frozenset(origins[name] for name in operator.inputs),
            frozenset(origins[name] for name in operator.outputs),
        )
        for operator in plan.graph.operators
    }
    others = held(steps)
    wanted = {
        (frozenset((*step.inputs, *others.get(step.output, ()))), frozenset([step.output]))
        for step in steps.steps
    }
    if found != wanted:
        raise wrong
