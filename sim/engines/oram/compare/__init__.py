"""The oblivious map beside others."""
