"""The attention engine beside published schedules."""
