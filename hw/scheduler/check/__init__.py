"""The independent checker: it imports nothing of planner or gates."""
