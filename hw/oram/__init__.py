"""Oblivious map: a key-value map in host memory whose accesses tell nothing (after BOLT)."""
