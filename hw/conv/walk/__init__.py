"""From a job in memory to the commands of units and movers."""
