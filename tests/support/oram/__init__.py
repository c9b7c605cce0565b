"""Support of the tests of the oblivious map."""
