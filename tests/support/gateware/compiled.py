"""Gates compiled to less Python: values are masked and signs extended only where a value can need it.

Amaranth masks every operand to its width and calls a function for every sign.  Signals, constants, slices
and sums hold the value of their shape as they are.
"""

from __future__ import annotations

from typing import Any

from amaranth.hdl import Const, Shape, Signal
from amaranth.hdl._ast import Concat, Operator, Part, Slice, SwitchValue
from amaranth.sim import _pyrtl

#: Operators whose Python is the value of their shape.
_EXACT = {1: ("-", "b", "r|", "r&", "r^"), 2: ("+", "-", "*", "&", "|", "^", "<<", ">>")}
_COMPARISONS = ("==", "!=", "<", "<=", ">", ">=")


class Exact(str):
    """Python of an expression that has the value of ``shape``."""

    shape: Shape

    def fits(self, shape: Shape) -> bool:
        """Tell whether the value fits ``shape``; one bit does not, since it may be a bool."""
        own = self.shape
        if own.signed and not shape.signed:
            return False
        return 1 < own.width <= shape.width - (shape.signed and not own.signed)


def _exact(code: str, shape: Shape) -> Exact:
    result = Exact(code)
    result.shape = shape
    return result


def _is_exact(value: Any) -> bool:
    if type(value) is Operator:
        operator, operands = value.operator, value.operands
        if operator == "u" or (operator == "s" and value.shape() == operands[0].shape()):
            return _is_exact(operands[0]) and value.shape() == operands[0].shape()
        return operator in _EXACT.get(len(operands), ()) or operator in _COMPARISONS
    return type(value) in (Signal, Const, Slice, Concat, SwitchValue, Part)


def _number(compiler: Any, value: Any) -> Exact:
    """Stand in for ``_RHSValueCompiler.sign``: the value of an expression as its shape has it."""
    code, shape = compiler(value), value.shape()
    if _is_exact(value):
        return _exact(code, shape)
    if not shape.width:
        return _exact("0", shape)
    masked = f"({(1 << shape.width) - 1:#x} & {code})"
    half = f"{1 << shape.width - 1:#x}"
    return _exact(f"(({masked} ^ {half}) - {half})" if shape.signed else masked, shape)


def _bits(compiler: Any, value: Any) -> str:
    """Return the bits of an expression, not negative."""
    code = compiler(value)
    if _is_exact(value) and not value.shape().signed:
        return str(code)
    return f"({(1 << len(value)) - 1:#x} & {code})"


def _operator(compiler: Any, value: Any) -> Any:
    """Stand in for ``_RHSValueCompiler.on_Operator``."""
    operator, operands = value.operator, value.operands
    if len(operands) == 2:
        first, second = (_number(compiler, operand) for operand in operands)
        if operator in ("//", "%"):
            return f"{'zdiv' if operator == '//' else 'zmod'}({first}, {second})"
        return f"({first} {operator} {second})"
    (operand,) = operands
    if operator == "-":
        return f"(-{_number(compiler, operand)})"
    if operator in ("u", "s"):
        return compiler(operand)
    bits = _bits(compiler, operand)
    return {
        "~": f"(~{bits})",
        "b": f"(0 != {bits})",
        "r|": f"(0 != {bits})",
        "r&": f"({(1 << len(operand)) - 1} == {bits})",
        "r^": f"(({bits}).bit_count() & 1)",
    }[operator]


def _slice(compiler: Any, value: Any) -> str:
    """Stand in for ``_RHSValueCompiler.on_Slice``."""
    inner = value.value
    code = f"({compiler(inner)} >> {value.start})" if value.start else str(compiler(inner))
    if value.stop == len(inner) and _is_exact(inner) and not inner.shape().signed:
        return code
    return f"({(1 << len(value)) - 1:#x} & {code})"


def _concat(compiler: Any, value: Any) -> str:
    """Stand in for ``_RHSValueCompiler.on_Concat``."""
    parts, offset = [], 0
    for part in value.parts:
        if len(part):
            code = _bits(compiler, part)
            parts.append(f"({code} << {offset})" if offset else code)
            offset += len(part)
    return f"({' | '.join(parts)})" if parts else "0"


def _chosen(compiler: Any, value: Any) -> Any:
    """Stand in for ``_RHSValueCompiler.on_SwitchValue``."""
    test = compiler.emitter.def_var("test", _bits(compiler.rrhs, value.test))
    result = compiler.emitter.def_var("rhs_switch", "0")

    def case(patterns: Any, element: Any) -> None:
        code = _number(compiler, element)
        compiler.emitter.append(f"{result} = {f'0x1 & {code}' if code.shape == Shape(1) else code}")

    compiler._emit_switch(test, value.cases, case)
    return result


def _assigned_signal(compiler: Any, value: Any) -> Any:
    """Stand in for ``_LHSValueCompiler.on_Signal``."""
    if compiler.outputs is not None:
        compiler.outputs.add(value)
    name, shape = f"next_{compiler.state.get_signal(value)}", value.shape()

    def assign(code: str) -> None:
        if not (isinstance(code, Exact) and code.fits(shape)):
            code = f"{(1 << shape.width) - 1:#x} & {code}"
            if shape.signed and shape.width:
                half = f"{1 << shape.width - 1:#x}"
                code = f"(({code}) ^ {half}) - {half}"
        compiler.emitter.append(f"{name} = {code}")

    return assign


def _assigned_slice(compiler: Any, value: Any) -> Any:
    """Stand in for ``_LHSValueCompiler.on_Slice``."""
    inner, shape = value.value, value.shape()
    mask = (1 << shape.width) - 1

    def assign(code: str) -> None:
        if not (isinstance(code, Exact) and code.fits(shape)):
            code = f"({mask:#x} & {code})"
        placed = f"({code} << {value.start})" if value.start else code
        kept = (1 << len(inner)) - 1 & ~(mask << value.start)
        whole = f"({_bits(compiler.lrhs, inner)} & {kept:#x} | {placed})"
        compiler(inner)(_exact(whole, Shape(len(inner))))

    return assign


def _assigned_concat(compiler: Any, value: Any) -> Any:
    """Stand in for ``_LHSValueCompiler.on_Concat``."""

    def assign(code: str) -> None:
        whole, offset = compiler.emitter.def_var("cat", code), 0
        for part in value.parts:
            if len(part):
                shifted = f"({whole} >> {offset})" if offset else whole
                compiler(part)(_exact(f"({(1 << len(part)) - 1:#x} & {shifted})", Shape(len(part))))
            offset += len(part)

    return assign


def _switch(compiler: Any, statement: Any) -> None:
    """Stand in for ``_StatementCompiler.on_Switch``."""
    test = compiler.emitter.def_var("test", _bits(compiler.rhs, statement.test))

    def case(patterns: Any, statements: Any, src_loc: Any) -> None:
        compiler(statements)

    compiler._emit_switch(test, statement.cases, case)


def install() -> None:
    """Let Amaranth compile gates this way in this process."""
    right, left = _pyrtl._RHSValueCompiler, _pyrtl._LHSValueCompiler
    right.sign, right.on_Operator, right.on_Slice, right.on_Concat = _number, _operator, _slice, _concat
    right.on_SwitchValue = _chosen
    left.on_Signal, left.on_Slice, left.on_Concat = _assigned_signal, _assigned_slice, _assigned_concat
    _pyrtl._StatementCompiler.on_Switch = _switch
