"""From a network to a plan, commands and packets of weights."""
