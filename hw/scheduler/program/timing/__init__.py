"""How long a program takes: the gates cycle by cycle, without their data."""
