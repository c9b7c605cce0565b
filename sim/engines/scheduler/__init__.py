"""The scheduler engine's simulation side: adapter, regression, demo, planner commands."""
