"""The form of a plan.json, checked without the planner's own classes: keys, types and legal words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

PLAN_FORMAT = "loomwork-plan/1"
SOURCE_KINDS = ("input", "weight", "cache")


@dataclass(frozen=True)
class _ListOf:
    entry: Any


@dataclass(frozen=True)
class _MapTo:
    entry: Any


@dataclass(frozen=True)
class _Optional:
    """A key that may be absent, and the value it then has."""

    form: Any
    default: Any


@dataclass(frozen=True)
class _OneOf:
    values: tuple[Any, ...]


class _Operator:
    """Stands for `_OPERATOR` inside of itself: members are operators."""


_TENSOR = {
    "name": str,
    "size_bytes": int,
    "shape": _Optional(_ListOf(int), []),
    "element_bits": _Optional(int, 8),
    "kind": _Optional(_OneOf((*SOURCE_KINDS, "activation", "output")), "activation"),
    "origin": _Optional(str, ""),
}
_ACCESS = {
    key: _Optional(int, default)
    for key, default in (("axis", 0), ("output_axis", 0), ("kernel", 1), ("stride", 1), ("pad", 0), ("up", 1))
}
_OPERATOR = {
    "name": str,
    "kind": str,
    "inputs": _ListOf(str),
    "outputs": _ListOf(str),
    "macs": _Optional(int, 0),
    "weight_bytes": _Optional(int, 0),
    "accesses": _Optional(_MapTo(_ACCESS), {}),
    "fused": _Optional(_ListOf(str), []),
    "members": _Optional(_ListOf(_Operator()), []),
    "inner": _Optional(_ListOf(_TENSOR), []),
    "fifo_bytes": _Optional(int, 0),
}
_SCALAR = _OneOf((str, int, float, bool, None))
_INDEX = _OneOf((int, None))
_DIRECTION = _OneOf(("read", "write"))
_PLAN = {
    "format": _OneOf((PLAN_FORMAT,)),
    "graph": {
        "name": str,
        "tensors": _ListOf(_TENSOR),
        "operators": _ListOf(_OPERATOR),
        "made_by": _Optional(str, ""),
    },
    "scratchpad_bytes": int,
    "word_bytes": int,
    "steps": _ListOf({"operator": str, "mode": _OneOf(("sequential", "pipelined")), "compute_cycles": int}),
    "episodes": _ListOf(
        {"tensor": str, "address": int, "size_bytes": int, "first_step": int, "last_step": int}
    ),
    "streams": _ListOf(
        {"tensor": str, "direction": _DIRECTION, "step": int, "address": int, "window_bytes": int}
    ),
    "fifos": _ListOf({"step": int, "address": int, "size_bytes": int}),
    "transfers": _ListOf(
        {
            "tensor": str,
            "direction": _DIRECTION,
            "episode": _INDEX,
            "stream": _INDEX,
            "size_bytes": int,
            "dram_address": int,
            "scratchpad_address": int,
            "start_step": int,
            "deadline_step": int,
        }
    ),
    "homes": _MapTo(int),
    "memory_bytes": int,
    "totals": dict.fromkeys(
        (
            "offchip_read_bytes",
            "offchip_write_bytes",
            "compulsory_bytes",
            "avoidable_bytes",
            "parameter_bytes",
            "peak_bytes",
            "transfers_total",
            "predicted_cycles",
            "exposed_cycles",
        ),
        int,
    ),
    "certificate": {
        "claim": str,
        "bound_avoidable_bytes": int,
        "order_bound_avoidable_bytes": int,
        "stages": _ListOf(
            {
                "stage": str,
                "solver": str,
                "status": _OneOf(("optimal", "feasible", "heuristic")),
                "objective": int,
                "bound": int,
                "unit": _Optional(str, "bytes"),
                "note": _Optional(str, ""),
            }
        ),
    },
    "options": _Optional(_MapTo(_SCALAR), {}),
}


def conform(document: Any) -> tuple[dict[str, Any], list[str]]:
    """Compare a document with the form of a plan.

    Parameters
    ----------
    document : Any
        What a JSON reader gave.

    Returns
    -------
    dict
        The document with what may be left out filled in; of use only when there are no problems.
    list of str
        Each place that has not the form.
    """
    problems: list[str] = []
    value = _conform(document, _PLAN, "plan", problems)
    return (value if isinstance(value, dict) else {}), problems


def _conform(value: Any, form: Any, place: str, problems: list[str]) -> Any:
    if isinstance(form, _Operator):
        form = _OPERATOR
    if isinstance(form, dict):
        return _conform_object(value, form, place, problems)
    if isinstance(form, _ListOf):
        if not isinstance(value, list | tuple):
            problems.append(f"{place} is {_shown(value)}, not a list")
            return []
        return [
            _conform(entry, form.entry, f"{place}[{index}]", problems) for index, entry in enumerate(value)
        ]
    if isinstance(form, _MapTo):
        if not isinstance(value, dict):
            problems.append(f"{place} is {_shown(value)}, not an object")
            return {}
        return {
            str(key): _conform(entry, form.entry, f"{place}.{key}", problems) for key, entry in value.items()
        }
    legal = form.values if isinstance(form, _OneOf) else (form,)
    if not any(_is(value, one) for one in legal):
        names = " or ".join(_named(one) for one in legal)
        problems.append(f"{place} is {_shown(value)}, not {names}")
    return value


def _conform_object(value: Any, form: dict[str, Any], place: str, problems: list[str]) -> dict[str, Any]:
    if not isinstance(value, dict):
        problems.append(f"{place} is {_shown(value)}, not an object")
        return {}
    problems.extend(f"{place} has the unknown key {key!r}" for key in value if key not in form)
    result = {}
    for key, entry in form.items():
        if key in value:
            inner = entry.form if isinstance(entry, _Optional) else entry
            result[key] = _conform(value[key], inner, f"{place}.{key}", problems)
        elif isinstance(entry, _Optional):
            result[key] = entry.default
        else:
            problems.append(f"{place} has no {key!r}")
    return result


def _is(value: Any, legal: Any) -> bool:
    if isinstance(legal, type):
        return type(value) is legal
    return type(value) is type(legal) and bool(value == legal)


def _named(legal: Any) -> str:
    names = {int: "a whole number", str: "text", float: "a number", bool: "true or false", None: "null"}
    for known, name in names.items():
        if legal is known:
            return name
    return repr(legal)


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 40 else f"{text[:37]}..."
