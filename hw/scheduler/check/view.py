"""The checker's own view of a plan: which steps write and read each tensor; rules of the graph."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

from hw.scheduler.check.form import SOURCE_KINDS
from hw.scheduler.check.groups import access_problems, group_problems, tensor_problems

#: Window that a tensor of unknown shape is streamed through.
UNKNOWN_WINDOW_BYTES = 4096


@dataclass(frozen=True, kw_only=True)
class View:
    """What the rules of time and space need to know.

    Members
    -------
    word_bytes, capacity_bytes, step_count : int
    size : dict of str to int
        Bytes of each tensor, in whole words.
    kind : dict of str to str
    shape : dict of str to list of int
    stored : dict of str to int
        Bytes of each tensor as the graph says.
    operators : list of dict
        By step.
    made_at : dict of str to int
        Step that writes each tensor; -1 for what lies off chip from the start.
    used_at : dict of str to list of int
        Steps that read each tensor, rising.
    """

    word_bytes: int
    capacity_bytes: int
    step_count: int
    size: dict[str, int]
    kind: dict[str, str]
    shape: dict[str, list[int]]
    stored: dict[str, int]
    operators: list[dict[str, Any]]
    made_at: dict[str, int]
    used_at: dict[str, list[int]]

    def whole_words(self, size_bytes: int) -> int:
        """Round bytes up to whole words."""
        return -(-size_bytes // self.word_bytes) * self.word_bytes

    def is_source(self, tensor: str) -> bool:
        """Whether a tensor lies off chip from the start."""
        return self.kind[tensor] in SOURCE_KINDS

    def least_window_bytes(self, step: int, tensor: str) -> int:
        """Bytes a tensor's window has at least: the rows an output row needs and those fetched meanwhile; of
        an output, a row that is made and one that leaves.
        """
        operator = self.operators[step]
        accesses, shape, whole = operator["accesses"], self.shape[tensor], self.size[tensor]
        axis, rows = None, 2
        if tensor in operator["outputs"]:
            axis = next((access["output_axis"] for access in accesses.values()), None)
        elif tensor in accesses:
            access = accesses[tensor]
            axis, rows = access["axis"], access["kernel"] + -(-access["stride"] // access["up"])
        if axis is None or axis >= len(shape):
            return min(whole, self.whole_words(UNKNOWN_WINDOW_BYTES))
        needed = self.whole_words(rows * -(-self.stored[tensor] // shape[axis]))
        return min(whole, max(2 * self.word_bytes, needed))

    def streams_alone(self, step: int, tensor: str) -> bool:
        """Whether an operator needs all of this input before anything else can move on."""
        operator = self.operators[step]
        return (
            bool(self.shape[tensor]) and tensor in operator["inputs"] and tensor not in operator["accesses"]
        )


def graph_problems(document: dict[str, Any]) -> list[str]:
    """Find what is wrong with the graph and the steps of a document that has the form of a plan."""
    tensors, operators = document["graph"]["tensors"], document["graph"]["operators"]
    problems = []
    word = document["word_bytes"]
    if word & (word - 1):
        problems.append(f"word_bytes is {word}, not a power of two")
    for what, entries in (("tensors", tensors), ("operators", operators)):
        names = Counter(entry["name"] for entry in entries)
        problems += [f"graph has {count} {what} named {name!r}" for name, count in names.items() if count > 1]
    for tensor in tensors:
        problems += tensor_problems(tensor)
    kinds = {tensor["name"]: tensor["kind"] for tensor in tensors}
    shapes = {tensor["name"]: tensor["shape"] for tensor in tensors}
    for operator in operators:
        problems += _operator_problems(operator, kinds)
        problems += group_problems(operator, shapes, word)
    makers = Counter(name for operator in operators for name in operator["outputs"])
    users = Counter(name for operator in operators for name in operator["inputs"])
    for name, kind in kinds.items():
        wanted = 0 if kind in SOURCE_KINDS else 1
        if makers[name] != wanted:
            problems.append(f"tensor {name!r} of kind {kind} is written by {makers[name]} operators")
        if kind != "output" and not users[name]:
            problems.append(f"tensor {name!r} of kind {kind} is read by no operator")
    for operator in operators if not problems else ():
        problems += access_problems(operator, shapes)
    return problems or _step_problems(document)


def view_of(document: dict[str, Any]) -> View:
    """Give the view of a document without `graph_problems`."""
    by_name = {operator["name"]: operator for operator in document["graph"]["operators"]}
    operators = [by_name[step["operator"]] for step in document["steps"]]
    tensors = document["graph"]["tensors"]
    made_at = dict.fromkeys((tensor["name"] for tensor in tensors), -1)
    used_at: dict[str, list[int]] = {tensor["name"]: [] for tensor in tensors}
    for step, operator in enumerate(operators):
        made_at.update(dict.fromkeys(operator["outputs"], step))
        for name in operator["inputs"]:
            used_at[name].append(step)
    word = document["word_bytes"]
    return View(
        word_bytes=word,
        capacity_bytes=document["scratchpad_bytes"],
        step_count=len(operators),
        size={tensor["name"]: -(-tensor["size_bytes"] // word) * word for tensor in tensors},
        kind={tensor["name"]: tensor["kind"] for tensor in tensors},
        shape={tensor["name"]: tensor["shape"] for tensor in tensors},
        stored={tensor["name"]: tensor["size_bytes"] for tensor in tensors},
        operators=operators,
        made_at=made_at,
        used_at=used_at,
    )


def _operator_problems(operator: dict[str, Any], kinds: dict[str, str]) -> list[str]:
    where = f"operator {operator['name']!r}"
    operands = Counter((*operator["inputs"], *operator["outputs"]))
    return [
        *(f"{where} names the unknown tensor {name!r}" for name in operands if name not in kinds),
        *(f"{where} names {name!r} twice" for name, count in operands.items() if count > 1),
        *(
            f"{where} has an access to {name!r}, not an input of it"
            for name in operator["accesses"]
            if name not in operator["inputs"]
        ),
    ]


def _step_problems(document: dict[str, Any]) -> list[str]:
    """Find operators that do not run once each, after what they read is made, in the mode of their kind."""
    by_name = {operator["name"]: operator for operator in document["graph"]["operators"]}
    per_cycle = document["options"].get("macs_per_cycle")
    problems = []
    done = {tensor["name"] for tensor in document["graph"]["tensors"] if tensor["kind"] in SOURCE_KINDS}
    for number, step in enumerate(document["steps"]):
        operator = by_name.get(step["operator"])
        if operator is None:
            problems.append(f"step {number} runs the unknown operator {step['operator']!r}")
            continue
        problems += [
            f"step {number} reads {name!r} before it is written"
            for name in operator["inputs"]
            if name not in done
        ]
        done.update(operator["outputs"])
        if (step["mode"] == "pipelined") != bool(operator["members"]):
            problems.append(f"step {number} is {step['mode']}, with {len(operator['members'])} members")
        # Each member of a group has multipliers of its own: as many as its macs need in these cycles.
        cycles, members = step["compute_cycles"], operator["members"] or [operator]
        needed = sum(max(1, -(-member["macs"] // max(1, cycles))) for member in members)
        known = isinstance(per_cycle, int) and per_cycle > 0
        if cycles < min(1, operator["macs"]) or (known and needed > per_cycle):
            problems.append(f"step {number} takes {cycles} compute_cycles; its macs take more")
    runs = Counter(step["operator"] for step in document["steps"])
    problems += [
        f"operator {name!r} runs {runs[name]} times, not once" for name in by_name if runs[name] != 1
    ]
    return problems
