"""Amaranth's simulator, quicker where testbenches read and drive signals, and where gates run.

Amaranth walks an expression for every read and every assignment of a testbench, computes the width of each
part, and makes the clock's trigger in every cycle.  Here parts and triggers are cached at expressions and
domains.  Compiled gates skip assignments of the value a signal already has, and equal processes are compiled
once.  `building`, `compiled` and `stepping` have the rest.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from amaranth.hdl import Const, Shape, ShapeCastable, Signal, Value
from amaranth.hdl._ast import Concat, Operator, Slice
from amaranth.hdl._ir import DriverConflict
from amaranth.lib import data
from amaranth.sim import _async, _pyrtl, pysim
from amaranth.sim._pyeval import eval_assign, eval_value

from tests.support.gateware import building, compiled, stepping

#: Assignment of a signal's next value in a compiled process, and names of signals.
_UPDATE = re.compile(r"(slots\[\d+\])\.update\((next_\d+), (-?\d+)\)")
#: A write into a memory, without effect if no bit is enabled.
_WRITE = re.compile(r"slots\[\d+\]\.write\(\w+, \w+, (\w+)\)$")
_SLOT = re.compile(r"slots\[(\d+)\]|\bnext_(\d+)")
#: Attributes of cached facts at Amaranth's objects.
_STATE, _PARTS, _PIECES, _TRIGGERS = "_quick_state", "_quick_parts", "_quick_pieces", "_quick_triggers"
_FIELDS = "_quick_fields"


def _state(simulation: Any, signal: Signal) -> Any:
    """Return the simulator's state of a signal."""
    known = signal.__dict__.get(_STATE)
    if known is None or known[0] is not simulation:
        known = simulation, simulation.slots[simulation.get_signal(signal)]
        setattr(signal, _STATE, known)
    return known[1]


def quick_value(simulation: Any, value: Any) -> int:
    """Evaluate like `amaranth.sim._pyeval.eval_value`."""
    kind = type(value)
    if kind is Signal:
        result: int = _state(simulation, value).curr
    elif kind is Const:
        result = value.value
    elif kind is Slice:
        mask = (1 << value.stop - value.start) - 1
        result = quick_value(simulation, value.value) >> value.start & mask
    elif kind is Concat:
        parts = value.__dict__.get(_PARTS)
        if parts is None:
            parts, at = [], 0
            for part in value.parts:
                parts.append((part, (1 << len(part)) - 1, at))
                at += len(part)
            setattr(value, _PARTS, parts)
        result = 0
        for part, mask, at in parts:
            result |= (quick_value(simulation, part) & mask) << at
    else:
        result = eval_value(simulation, value)
    return result


def _pieces(target: Any, at: int) -> list[tuple[Signal, int, int, int]] | None:
    """Return the signals of ``target`` as (signal, first bit, mask, place in a value); None if it has other
    parts.
    """
    if isinstance(target, Operator) and target.operator in ("u", "s"):
        return _pieces(target.operands[0], at)
    if isinstance(target, Signal):
        return [(target, 0, (1 << len(target)) - 1, at)]
    if isinstance(target, Slice):
        width, cut = target.stop - target.start, []
        for signal, first, mask, place in _pieces(target.value, 0) or [(None, 0, 0, 0)]:
            if signal is None:
                return None
            low, high = max(target.start, place), min(target.stop, place + mask.bit_length())
            if low < high:
                cut.append((signal, first + low - place, (1 << high - low) - 1, at + low - target.start))
        return cut if width else []
    if isinstance(target, Concat):
        joined = []
        for part in target.parts:
            pieces = _pieces(part, at) if len(part) else []
            if pieces is None:
                return None
            joined += pieces
            at += len(part)
        return joined
    return None


def quick_assign(simulation: Any, target: Any, value: int) -> None:
    """Assign like `amaranth.sim._pyeval.eval_assign`."""
    pieces = target.__dict__.get(_PIECES, False)
    if pieces is False:
        pieces = _pieces(target, 0)
        setattr(target, _PIECES, pieces)
    if pieces is None:
        eval_assign(simulation, target, value)
        return
    for signal, first, mask, at in pieces:
        state = _state(simulation, signal)
        if state.is_comb:
            raise DriverConflict("Combinationally driven signals cannot be overriden by testbenches")
        width, signed = signal._width, signal._signed
        bits = state.next & ~(mask << first) & (1 << width) - 1 | (value >> at & mask) << first
        state.update(bits - (1 << width) if signed and bits >> width - 1 else bits)


def quick_bits(shape: Any, payload: Any) -> int:
    """Return the bits of a payload, not negative, as the ``const`` of its ``shape`` does."""
    if isinstance(shape, data.ArrayLayout) and isinstance(payload, Sequence):
        elem, width = shape.elem_shape, Shape.cast(shape.elem_shape).width
        if len(payload) == shape.length:
            return sum(quick_bits(elem, part) << width * at for at, part in enumerate(payload))
    elif type(shape) is data.StructLayout and isinstance(payload, Mapping):
        fields = _fields(shape)
        if payload.keys() == fields.keys():
            return sum(quick_bits(fields[name][0], part) << fields[name][1] for name, part in payload.items())
    elif type(shape) is Shape and type(payload) is int:
        return payload & (1 << shape.width) - 1
    const = shape.const(payload) if isinstance(shape, ShapeCastable) else Const(payload, shape)
    return Const.cast(const).value & (1 << Shape.cast(shape).width) - 1


def quick_payload(shape: Any, bits: int) -> Any:
    """Return ``bits`` as integers, or dicts and lists of them; as a value of its own where a shape has
    one.
    """
    if isinstance(shape, data.ArrayLayout):
        width = Shape.cast(shape.elem_shape).width
        mask = (1 << width) - 1
        return [quick_payload(shape.elem_shape, bits >> width * at & mask) for at in range(shape.length)]
    if isinstance(shape, data.StructLayout):
        return {
            name: quick_payload(inner, bits >> at & (1 << Shape.cast(inner).width) - 1)
            for name, (inner, at) in _fields(shape).items()
        }
    if isinstance(shape, ShapeCastable):
        value = shape.from_bits(bits)
        return quick_payload(value.shape(), bits) if isinstance(value, data.Const) else value
    shape = Shape.cast(shape)
    width = shape.width
    return bits - (1 << width) if shape.signed and bits >> width - 1 else bits


def _fields(layout: data.StructLayout) -> dict[str, tuple[Any, int]]:
    """Return shape and first bit of each field."""
    fields: dict[str, tuple[Any, int]] | None = layout.__dict__.get(_FIELDS)
    if fields is None:
        fields = {name: (field.shape, field.offset) for name, field in layout}
        setattr(layout, _FIELDS, fields)
    return fields


def _triggers(tick: Any) -> tuple[Any, ...]:
    """Return the triggers and samples of a tick of a clock."""
    known: tuple[Any, ...] | None = tick.__dict__.get(_TRIGGERS)
    if known is None:
        domain = tick._domain
        clock = domain.__dict__.get(_TRIGGERS)
        if clock is None:
            reset = Const(0) if domain.rst is None else domain.rst
            clock = (
                _async.EdgeTrigger(domain.clk, int(domain.clk_edge == "pos")),
                _async.SampleTrigger(Const(0)),
                _async.SampleTrigger(reset),
            )
            setattr(domain, _TRIGGERS, clock)
        known = *clock, *(_async.SampleTrigger(value) for value in tick._sampled)
        setattr(tick, _TRIGGERS, known)
    return known


_compile = lru_cache(maxsize=1 << 15)(compile)


def _localized(code: str, filename: str, mode: str) -> tuple[Any, list[int]]:
    """Compile a process with its signals renumbered from 0, so that equal processes are compiled once; return
    their numbers in the simulator, too.
    """
    numbers: dict[str, int] = {}

    def local(place: re.Match[str]) -> str:
        signal = place[1] or place[2]
        number = numbers.setdefault(signal, len(numbers))
        return f"s{number}" if place[1] else f"next_{number}"

    code = _SLOT.sub(local, code)
    slots = ", ".join(f"s{number}=slots[{number}]" for number in range(len(numbers)))
    code = code.replace("def run():", f"def run({slots}):", 1)
    return _compile(code, filename, mode), list(map(int, numbers))


def _execute(compiled: tuple[Any, list[int]], names: dict[str, Any]) -> None:
    """Execute the code of `_localized`, which defines the process."""
    code, numbers = compiled
    if numbers:
        names["slots"] = [names["slots"][number] for number in numbers]
        names["pending"] = names["slots"][0].pending
    exec(code, names)


def install() -> None:
    """Make Amaranth's simulator quick in this process."""
    collect, put = _async.TickTrigger._collect_trigger, _async.TestbenchContext.set
    compute = pysim._PyTriggerState.compute_result

    def collect_trigger(tick: Any) -> Any:
        if tick._domain.async_reset:
            return collect(tick)
        return _async.TriggerCombination(tick._engine, tick._process, triggers=_triggers(tick))

    def set_value(context: Any, expression: Any, value: Any) -> None:
        if isinstance(expression, data.View):
            bits = quick_bits(expression.shape(), value)
            quick_assign(context._engine.state, expression.as_value(), bits)
            context._engine.step_design()
        elif type(value) is int and isinstance(expression, Value):
            quick_assign(context._engine.state, expression, value)
            context._engine.step_design()
        else:
            put(context, expression, value)

    def compute_result(waiting: Any) -> None:
        results: list[Any] = []
        for trigger in waiting._combination._triggers:
            if type(trigger) is _async.EdgeTrigger:
                results.append(trigger in waiting._triggers_hit)
            elif type(trigger) is _async.SampleTrigger and type(trigger.shape) is Shape:
                results.append(quick_value(waiting._engine.state, trigger.value))
            else:
                compute(waiting)
                return
        waiting._result = tuple(results)

    append = _pyrtl._PythonEmitter.append

    def append_line(emitter: Any, code: str) -> None:
        """Skip assignments without a change: most have none."""
        if update := _UPDATE.match(code):
            whole = f"{update[1]}.next = {update[2]}; pending.add({update[1]})"
            code = f"if {update[1]}.next != {update[2]}: {whole if update[3] == '-1' else code}"
        else:
            code = _WRITE.sub(r"if \1: \g<0>", code)
        append(emitter, code)

    building.install()
    compiled.install()
    stepping.install()
    _pyrtl._PythonEmitter.append = append_line
    _pyrtl.compile, _pyrtl.exec = _localized, _execute
    pysim._PyTriggerState.compute_result = compute_result
    pysim.eval_value, pysim.eval_assign = quick_value, quick_assign
    _async.TickTrigger._collect_trigger = collect_trigger
    _async.TestbenchContext.set = set_value
