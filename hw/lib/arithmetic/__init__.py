"""Arithmetic of fixed and floating point: gates, and expressions that become gates."""
