"""Cryptography of the oblivious map."""
