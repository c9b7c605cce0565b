"""Search over orders: annealing, and windows solved by CP-SAT."""
