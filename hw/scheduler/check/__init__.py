"""The independent checker; it imports neither the planner nor the engine."""
