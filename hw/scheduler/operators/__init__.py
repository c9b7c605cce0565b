"""Operators: the engines behind an operator port."""
