"""Commands and pages of the planner."""
