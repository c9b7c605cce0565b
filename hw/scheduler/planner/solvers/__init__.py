"""Solvers: integer programs (`milp`), and CP-SAT in a process of its own (`cpsat`).

The two must not share a process: highspy and OR-tools bring different builds of the same library, and the
second import fails.  So only `packing` imports OR-tools, and it runs in that process.
"""

from hw.errors import ToolError


class SolverError(ToolError):
    """A solver is missing, crashed, or returned no answer."""


__all__ = ["SolverError"]
