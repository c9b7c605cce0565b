"""The planner: maps a graph onto a scratchpad."""
