"""Boards: what a device offers (placeholder until boards are loaded)."""
