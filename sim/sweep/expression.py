"""Expressions of a sweep's file: arithmetic and comparisons over parameters and figures, and nothing else."""

import ast
import operator
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

_OPERATORS: dict[type[ast.AST], Callable[..., Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.USub: operator.neg,
    ast.Not: operator.not_,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}
_FUNCTIONS: dict[str, Callable[..., Any]] = {"min": min, "max": max}
#: Legal parts of an expression.
LEGAL = "numbers, names, + - * / // %, comparisons, and, or, not, min(), max() and brackets"


@dataclass(frozen=True)
class Expression:
    """Python's syntax of expressions, evaluated over names such as ``rows`` or ``minilm.cycles``.

    Raises `ValueError` for anything but `LEGAL`, when it is made.
    """

    text: str

    def __post_init__(self) -> None:
        if len(self.text) > 1000:
            raise ValueError("expressions have at most 1,000 characters")
        for _ in _checked(self._tree):
            pass

    @cached_property
    def _tree(self) -> ast.expr:
        try:
            return ast.parse(self.text.strip(), mode="eval").body
        except (SyntaxError, RecursionError, MemoryError) as error:
            raise ValueError("no expression") from error

    @property
    def names(self) -> frozenset[str]:
        """Names it needs."""
        return frozenset(_checked(self._tree))

    def value(self, names: Mapping[str, Any]) -> Any:
        """Evaluate it; raise `ValueError` where that is impossible, `KeyError` for an unknown name."""
        try:
            return _value(self._tree, names)
        except (ArithmeticError, TypeError) as error:
            raise ValueError(f"{self.text}: {error}") from error


def _dotted(node: ast.expr) -> str:
    if isinstance(node, ast.Attribute):
        return f"{_dotted(node.value)}.{node.attr}"
    if isinstance(node, ast.Name):
        return node.id
    raise ValueError(LEGAL)


def _checked(node: ast.expr) -> Iterator[str]:
    """Return the names in an expression; raise `ValueError` for an illegal one."""
    match node:
        case ast.Constant(value=int() | float() | str()):
            return
        case ast.Name() | ast.Attribute():
            yield _dotted(node)
        case ast.BinOp(left, op, right) if type(op) in _OPERATORS:
            yield from (*_checked(left), *_checked(right))
        case ast.UnaryOp(op, operand) if type(op) in _OPERATORS:
            yield from _checked(operand)
        case ast.BoolOp(_, values):
            yield from (name for value in values for name in _checked(value))
        case ast.Compare(left, ops, others) if all(type(op) in _OPERATORS for op in ops):
            yield from (name for value in (left, *others) for name in _checked(value))
        case ast.Call(ast.Name(name), [_, *_] as values, []) if name in _FUNCTIONS:
            yield from (name for value in values for name in _checked(value))
        case _:
            raise ValueError(LEGAL)


def _value(node: ast.expr, names: Mapping[str, Any]) -> Any:
    match node:
        case ast.Constant(value):
            return value
        case ast.BinOp(left, op, right):
            return _OPERATORS[type(op)](_value(left, names), _value(right, names))
        case ast.UnaryOp(op, operand):
            return _OPERATORS[type(op)](_value(operand, names))
        case ast.BoolOp(op, values):
            combine = all if isinstance(op, ast.And) else any
            return combine(_value(value, names) for value in values)
        case ast.Compare(left, ops, others):
            values = [_value(value, names) for value in (left, *others)]
            pairs = zip(ops, values, values[1:], strict=False)
            return all(_OPERATORS[type(op)](first, second) for op, first, second in pairs)
        case ast.Call(ast.Name(name), values):
            return _FUNCTIONS[name](*(_value(value, names) for value in values))
    return names[_dotted(node)]
