"""Scratchpad sizes: their text form, and COSMA's three budgets (arXiv 2311.18246, section V)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction

from hw.board.units import BYTES
from hw.errors import InputError
from hw.scheduler.plan.problem import Problem
from hw.scheduler.planner.order.min_peak import minimum_peak

_SIZE = re.compile(r"([0-9]+(?:\.[0-9]+)?) *(\*? *M_[RHP]|[A-Za-z]*)")
_LEGAL = "a size such as 524288, 512KiB or 1.5MiB, or a share of a budget such as M_R, M_H, M_P or 0.5M_R"


@dataclass(frozen=True, kw_only=True)
class Budgets:
    """COSMA's budgets of a graph, in bytes.

    M_R is the most that one operator needs with its inputs and outputs whole.  M_P is the least peak of live
    tensors over all orders, or the least found: more is never needed.  M_H is the mean of both.
    """

    m_r_bytes: int
    m_h_bytes: int
    m_p_bytes: int

    @classmethod
    def of(cls, problem: Problem, *, seed: int = 0) -> Budgets:
        """Compute the budgets of a graph."""
        peak = minimum_peak(problem, seed=seed).words
        required, word = max(problem.working_set), problem.word_bytes
        return cls(m_r_bytes=required * word, m_h_bytes=(required + peak) // 2 * word, m_p_bytes=peak * word)


def parse_scratchpad(text: str, problem: Problem, *, seed: int = 0) -> int:
    """Parse a size into bytes: ``"512KiB"``, ``"524288"``, ``"M_H"``, ``"0.5M_R"``.

    Raises `InputError` when the text is no such size, or the size is below one word.
    """
    match = _SIZE.fullmatch(text.strip() if text.strip()[:1] != "M" else f"1{text.strip()}")
    if match is None:
        raise InputError("scratchpad", text, _LEGAL)
    number, unit = Fraction(match[1]), match[2].replace("*", "").strip()
    if unit.startswith("M_"):
        if unit == "M_R":
            budget = max(problem.working_set) * problem.word_bytes
        else:
            found = Budgets.of(problem, seed=seed)
            budget = found.m_h_bytes if unit == "M_H" else found.m_p_bytes
        size = number * budget
    elif unit in ("", *BYTES):
        size = number * BYTES.get(unit, 1)
    else:
        raise InputError("scratchpad", text, _LEGAL)
    if size < problem.word_bytes:
        raise InputError("scratchpad", text, f"at least {problem.word_bytes} bytes")
    return int(size)
