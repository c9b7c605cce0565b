"""The engine's memory ports: lines in HBM, pages and rings in host memory."""
