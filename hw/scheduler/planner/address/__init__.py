"""Where in the scratchpad each tensor lies."""
