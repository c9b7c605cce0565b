"""Gateware generators, and the code that decides their shape. Never imports ``sim``."""
