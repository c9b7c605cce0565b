"""Options and plans as plain data, and the planner's view of a graph."""
