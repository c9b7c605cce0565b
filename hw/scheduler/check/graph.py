"""Rules of the graph and of the steps that execute it."""

import math
from collections import Counter
from collections.abc import Iterator

from hw.scheduler.check.form import Operator, Plan, Tensor


def declaration_problems(plan: Plan) -> Iterator[str]:
    """Find a word size that is no power of two, duplicate names, and shapes that contradict a size."""
    if plan.word_bytes & (plan.word_bytes - 1):
        yield f"word_bytes is {plan.word_bytes}, not a power of two"
    for what, entries in (("tensors", plan.graph.tensors), ("operators", plan.graph.operators)):
        for name, count in Counter(entry.name for entry in entries).items():
            if count > 1:
                yield f"graph has {count} {what} named {name!r}"
    for tensor in plan.graph.tensors:
        yield from shape_problems(tensor)


def shape_problems(tensor: Tensor) -> Iterator[str]:
    """Find a shape that contradicts its tensor's size."""
    stored = -(-math.prod(tensor.shape) * tensor.element_bits // 8)
    if tensor.shape and tensor.size_bytes != stored:
        yield f"tensor {tensor.name!r} has {tensor.size_bytes} bytes; its shape makes {stored}"


def operand_problems(plan: Plan) -> Iterator[str]:
    """Find operands that are unknown or named twice, and accesses to tensors that are no inputs."""
    for operator in plan.graph.operators:
        where = f"operator {operator.name!r}"
        for name, count in Counter((*operator.inputs, *operator.outputs)).items():
            if name not in plan.tensor:
                yield f"{where} names the unknown tensor {name!r}"
            if count > 1:
                yield f"{where} names {name!r} twice"
        for each in (operator, *operator.members):
            for name in each.accesses:
                if name not in each.inputs:
                    yield f"operator {each.name!r} has an access to {name!r}, not an input of it"


def reach_problems(plan: Plan) -> Iterator[str]:
    """Find accesses along missing dimensions, or far beyond a tensor's rows.

    A kernel is at most four times as long as the rows and the padding before them. Groups and bands are
    exempt: a group's kernel follows from its members', and a band has the kernel of the whole.
    """
    for operator in plan.graph.operators:
        known = plan.tensor | {tensor.name: tensor for tensor in operator.inner}
        for each in (operator, *operator.members):
            output = known[each.outputs[0]]
            for name, access in each.accesses.items():
                where, read = f"operator {each.name!r} reads {name!r}", known[name]
                for key, of in (("axis", read), ("output_axis", output)):
                    axis = getattr(access, key)
                    if of.shape and axis >= len(of.shape):
                        yield f"{where} by {key} {axis}, but {of.name!r} has no such dimension"
                cut = each.members or read.origin or output.origin
                if not cut and access.axis < len(read.shape):
                    most = 4 * (read.shape[access.axis] + max(access.pad, 0))
                    if access.kernel > most:
                        yield f"{where} by a kernel of {access.kernel} rows, more than {most}"


def use_problems(plan: Plan) -> Iterator[str]:
    """Find tensors written by too many or too few operators, and tensors that none reads."""
    makers = Counter(name for operator in plan.graph.operators for name in operator.outputs)
    read = {name for operator in plan.graph.operators for name in operator.inputs}
    for name, tensor in plan.tensor.items():
        if makers[name] != (not tensor.is_source):
            yield f"tensor {name!r} of kind {tensor.kind} is written by {makers[name]} operators"
        if tensor.kind != "output" and name not in read:
            yield f"tensor {name!r} of kind {tensor.kind} is read by no operator"


def order_problems(plan: Plan) -> Iterator[str]:
    """Find operators that do not run exactly once, or run before their inputs are written."""
    done = {name for name, tensor in plan.tensor.items() if tensor.is_source}
    for number, step in enumerate(plan.steps):
        operator = plan.operator.get(step.operator)
        if operator is None:
            yield f"step {number} runs the unknown operator {step.operator!r}"
            continue
        for name in operator.inputs:
            if name not in done:
                yield f"step {number} reads {name!r} before it is written"
        done.update(operator.outputs)
    runs = Counter(step.operator for step in plan.steps)
    for name in plan.operator:
        if runs[name] != 1:
            yield f"operator {name!r} runs {runs[name]} times, not once"


def arithmetic_problems(plan: Plan) -> Iterator[str]:
    """Find steps whose mode or cycles contradict their operator."""
    for number, step in enumerate(plan.steps):
        operator, cycles = plan.operator.get(step.operator), step.compute_cycles
        if operator is None:
            continue
        if (step.mode == "pipelined") != bool(operator.members):
            yield f"step {number} is {step.mode}, with {len(operator.members)} members"
        if not _computable(cycles, operator, plan):
            yield f"step {number} takes {cycles} compute_cycles; its operator takes more"
        elif cycles and _computable(cycles - 1, operator, plan):
            yield f"step {number} takes {cycles} compute_cycles; its operator takes fewer"


def _computable(cycles: int, operator: Operator, plan: Plan) -> bool:
    """Whether an operator can be computed in ``cycles``."""
    members = operator.members or [operator]
    if any(cycles < member.least_cycles for member in members):
        return False
    if cycles < 1:
        return cycles == operator.macs == 0
    # Each member of a group has its own multipliers: as many as its macs need in these cycles.
    return sum(max(1, -(-member.macs // cycles)) for member in members) <= plan.options.macs_per_cycle
