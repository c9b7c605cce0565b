"""What runs and judges the gates: golden and memory models, the simulator, reports and the command line."""
