"""From a graph and a scratchpad to a plan."""
