"""Gateware generators: everything that becomes gates, and what decides their shape. Never imports ``sim``."""
