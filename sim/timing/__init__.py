"""Static timing analysis: estimated path delays between registers, before placement."""
