"""Exploration: from thousands of designs to the few worth building (``docs/sweep.md``)."""
