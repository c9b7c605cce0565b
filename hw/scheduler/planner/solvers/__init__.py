"""Solvers behind one door each: integer programs (`milp`), and CP-SAT in a process of its own (`cpsat`).

The two must not meet: highspy and OR-tools bring different builds of the same library, and whichever is
imported second fails to load.  So `milp` is imported only by the planner's process, OR-tools only by
`worker`.
"""

from __future__ import annotations

from hw.errors import ToolError


class SolverError(ToolError):
    """A solver is missing, crashed, or gave an answer that its own model refutes; callers fall back on
    another one and say so.
    """


__all__ = ["SolverError"]
