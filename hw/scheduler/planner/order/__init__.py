"""The order of operators: bounds, exact search, annealing."""
