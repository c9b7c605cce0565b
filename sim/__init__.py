"""What runs and judges the gates: golden models, memory models, the simulator, reports and the command line."""
