"""Transfers between memory and scratchpad, and their steps."""
