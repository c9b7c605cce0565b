"""Rules of pipelined groups: a group's fields must follow from its members."""

from collections.abc import Iterator

from hw.scheduler.check.form import MOST_ROWS, Operator, Plan, Rows, Tensor
from hw.scheduler.check.graph import shape_problems


def group_problems(plan: Plan) -> Iterator[str]:
    """Compare groups with their members: tensors that members exchange are inner, the others the group's."""
    for group in plan.graph.operators:
        for operator in group.members or [group]:
            if operator.inner or operator.fifo_bytes or operator.members:
                yield f"operator {operator.name!r} has what only groups have"
        if group.members:
            where = f"group {group.name!r}"
            if group.kind != "group":
                yield f"{where} is of kind {group.kind!r}"
            yield from (f"{where} {problem}" for problem in _outside_problems(group, plan))
            yield from (problem for tensor in group.inner for problem in shape_problems(tensor))
            yield from (f"{where} {problem}" for problem in _buffer_problems(group, plan.word_bytes))
            for key in ("macs", "least_cycles", "weight_bytes"):
                if sum(getattr(member, key) for member in group.members) != getattr(group, key):
                    yield f"{where} has other {key} than its members together"


def _outside_problems(group: Operator, plan: Plan) -> Iterator[str]:
    """Compare the inputs, outputs and inner tensors of a group with those of its members."""
    made, exchanged, outside = set[str](), set[str](), set[str]()
    for member in group.members:
        exchanged |= made & set(member.inputs)
        outside |= set(member.inputs) - made
        made |= set(member.outputs)
    inside = sorted(made - set(group.outputs))
    if outside != set(group.inputs):
        yield f"and its members disagree on reading {min(outside ^ set(group.inputs))!r}"
    for name in group.outputs:
        if name not in made:
            yield f"writes {name!r}, which no member makes"
    for name in inside:
        if name not in exchanged:
            yield f"makes {name!r}, which no later member reads"
        if name in plan.tensor:
            yield f"keeps {name!r} inside, but the graph has a tensor of that name"
    described = sorted(tensor.name for tensor in group.inner)
    if described != inside:
        yield f"describes {described} as inner, its members hand on {inside}"


def _buffer_problems(group: Operator, word_bytes: int) -> Iterator[str]:
    """Find inner tensors that cannot pass through a FIFO, and FIFOs whose sum is too small."""
    least = 0
    for tensor in group.inner:
        readers = [member for member in group.members if tensor.name in member.inputs]
        if len(readers) != 1:
            yield f"hands {tensor.name!r} on to {len(readers)} members, not one"
            continue
        access = readers[0].accesses.get(tensor.name)
        if access is None or access.axis >= len(tensor.shape):
            yield f"hands {tensor.name!r} on, which its reader needs whole"
        else:
            least += tensor.rows_bytes(access.held_rows, access.axis, word_bytes)
    if group.fifo_bytes < least:
        yield f"has {group.fifo_bytes} fifo_bytes; its buffers take {least}"


def access_problems(plan: Plan) -> Iterator[str]:
    """Find inputs whose access names fewer rows than a row of the group's output needs."""
    for group in plan.graph.operators:
        known = plan.tensor | {tensor.name: tensor for tensor in group.inner}
        output = known[group.outputs[0]].shape
        for name, access in group.accesses.items() if group.members else ():
            if access.axis >= len(known[name].shape) or access.output_axis >= len(output):
                continue
            extent = known[name].shape[access.axis]
            for row in range(min(MOST_ROWS, output[access.output_axis])):
                first, last = access.rows((row, row + 1), extent)
                needed = _needed(group, known, (row, row + 1), access.output_axis)[name]
                low, high = needed[0] if needed and needed[1] == access.axis else (0, extent)
                if low < high and not first <= low < high <= last:
                    yield (
                        f"group {group.name!r} names rows {first} to {last} of {name!r} for row {row}, "
                        f"its members need {low} to {high}"
                    )
                    break


def _needed(
    group: Operator, known: dict[str, Tensor], made: Rows, axis: int
) -> dict[str, tuple[Rows, int] | None]:
    """Return, for each inner tensor and input of a group, the rows that some rows of its output need, and
    their dimension; None for the whole tensor.
    """
    needed: dict[str, tuple[Rows, int] | None] = dict.fromkeys(group.outputs, (made, axis))
    for member in reversed(group.members):
        after = needed.get(member.outputs[0])
        for name in member.inputs:
            access, shape = member.accesses.get(name), known[name].shape
            needed[name] = None
            if after and access and access.output_axis == after[1] and access.axis < len(shape):
                needed[name] = access.rows(after[0], shape[access.axis]), access.axis
    return needed
