"""Golden model of the oblivious map."""
