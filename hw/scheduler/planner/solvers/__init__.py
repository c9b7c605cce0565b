"""Solvers behind one door each: integer programs (`milp`), and CP-SAT in a process of its own (`cpsat`).

The two must not meet: highspy and OR-tools bring different builds of the same library, and whichever is
imported second fails to load.  So OR-tools is imported only by `packing`, which that process runs.
"""

from __future__ import annotations

from hw.errors import ToolError


class SolverError(ToolError):
    """A solver is missing, crashed, or gave no answer."""


__all__ = ["SolverError"]
