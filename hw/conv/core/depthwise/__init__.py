"""The depthwise unit: a line buffer, walkers and addresses, and lane cells that sample, multiply and add."""
