"""What is asked of a planner and what it answers, as plain data."""
