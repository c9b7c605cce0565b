"""A client of the map in Python: sequence numbers that survive a crash, epochs, several clients, recovery."""
