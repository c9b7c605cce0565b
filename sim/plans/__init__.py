"""Pages, tables and comparisons of plans, and helpers of the planner's commands."""
