"""Rules of pipelined groups: what a group says of itself follows from its members."""

from __future__ import annotations

import math
from typing import Any

Rows = tuple[int, int]

#: Rows of a group's output that are looked at: what the rows behind them need repeats.
MOST_ROWS = 4096


def tensor_problems(tensor: dict[str, Any]) -> list[str]:
    """Find a shape that is not the size of its tensor."""
    name, size, shape = tensor["name"], tensor["size_bytes"], tensor["shape"]
    stored = -(-math.prod(shape) * tensor["element_bits"] // 8)
    return [f"tensor {name!r} has {size} bytes; its shape makes {stored}"] if shape and size != stored else []


def group_problems(operator: dict[str, Any], shapes: dict[str, list[int]], word: int) -> list[str]:
    """Compare a group with its members: what they exchange stays inside, the rest is the group's.

    Parameters
    ----------
    operator : dict
        Any operator; one without members has no problems.
    shapes : dict of str to list of int
        Of the graph's tensors.
    word : int
        Bytes of a word.
    """
    members = operator["members"]
    if not members:
        return []
    where = f"group {operator['name']!r}"
    problems, made, inside_used, from_outside = [], set[str](), set[str](), set[str]()
    for member in members:
        inside_used |= made & set(member["inputs"])
        from_outside |= set(member["inputs"]) - made
        made |= set(member["outputs"])
    inside = made - set(operator["outputs"])
    if from_outside != set(operator["inputs"]):
        strange = sorted(from_outside ^ set(operator["inputs"]))[0]
        problems.append(f"{where} and its members disagree on reading {strange!r}")
    problems += [
        f"{where} writes {name!r}, which no member makes" for name in operator["outputs"] if name not in made
    ]
    for name in sorted(inside):
        if name not in inside_used:
            problems.append(f"{where} makes {name!r}, which no later member reads")
        if name in shapes:
            problems.append(f"{where} keeps {name!r} inside, but the graph has a tensor of that name")
    described = sorted(tensor["name"] for tensor in operator["inner"])
    if described != sorted(inside):
        problems.append(f"{where} describes {described} as inner, its members hand on {sorted(inside)}")
    least = 0
    for tensor in operator["inner"]:
        problems += tensor_problems(tensor)
        readers = [member for member in members if tensor["name"] in member["inputs"]]
        if len(readers) != 1:
            problems.append(f"{where} hands {tensor['name']!r} on to {len(readers)} members, not one")
            continue
        access, shape = readers[0]["accesses"].get(tensor["name"]), tensor["shape"]
        if access is None or access["axis"] >= len(shape):
            problems.append(f"{where} hands {tensor['name']!r} on, which its reader needs whole")
            continue
        # The rows that a row of the reader needs, and those made meanwhile; two words at least.
        rows = access["kernel"] + -(-access["stride"] // access["up"])
        row_bytes = -(-tensor["size_bytes"] // shape[access["axis"]])
        words = min(max(2, -(-rows * row_bytes // word)), -(-tensor["size_bytes"] // word))
        least += words * word
    if operator["fifo_bytes"] < least:
        problems.append(f"{where} has {operator['fifo_bytes']} fifo_bytes; its buffers take {least}")
    for key in ("macs", "weight_bytes"):
        if sum(member[key] for member in members) != operator[key]:
            problems.append(f"{where} has other {key} than its members together")
    return problems


def access_problems(operator: dict[str, Any], shapes: dict[str, list[int]]) -> list[str]:
    """Find inputs of which a row of a group's output needs more rows than the group's access names.

    The graph is known to be sound otherwise.
    """
    problems, output = [], operator["outputs"][0]
    inside = shapes | {tensor["name"]: tensor["shape"] for tensor in operator["inner"]}
    for name, access in operator["accesses"].items() if operator["members"] else ():
        if access["axis"] >= len(inside[name]) or access["output_axis"] >= len(inside[output]):
            continue
        extent = inside[name][access["axis"]]
        for row in range(min(MOST_ROWS, inside[output][access["output_axis"]])):
            first, last = _rows(access, (row, row + 1), extent)
            needed = _needed(operator, inside, (row, row + 1), access["output_axis"])[name]
            low, high = needed[0] if needed and needed[1] == access["axis"] else (0, extent)
            if low < high and not first <= low < high <= last:
                problems.append(
                    f"group {operator['name']!r} names rows {first} to {last} of {name!r} for row {row}, "
                    f"its members need {low} to {high}"
                )
                break
    return problems


def _needed(
    operator: dict[str, Any], shapes: dict[str, list[int]], rows: Rows, axis: int
) -> dict[str, tuple[Rows, int] | None]:
    """Give the rows, and the dimension they are counted along, of each tensor inside of a group and before
    it that some rows of its output need; None for all.
    """
    needed: dict[str, tuple[Rows, int] | None] = dict.fromkeys(operator["outputs"], (rows, axis))
    for member in reversed(operator["members"]):
        made = needed.get(member["outputs"][0])
        for name in member["inputs"]:
            access = member["accesses"].get(name)
            needed[name] = None
            if made and access and access["output_axis"] == made[1] and access["axis"] < len(shapes[name]):
                rows = _rows(access, made[0], shapes[name][access["axis"]])
                needed[name] = rows, access["axis"]
    return needed


def _rows(access: dict[str, Any], rows: Rows, extent: int) -> Rows:
    """Give the input rows, end excluded, that some rows of an output need; empty when all lie outside."""
    first = rows[0] * access["stride"] // access["up"] - access["pad"]
    last = (rows[1] - 1) * access["stride"] // access["up"] - access["pad"] + access["kernel"]
    return max(first, 0), min(last, extent)
