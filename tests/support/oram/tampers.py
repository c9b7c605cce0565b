"""Attacks of a host on pages, as the tensor of a job: rows of `sim.run.adapter.Tamper`."""

import numpy as np


def flip(config, page, read, byte, bit):
    """Flip a bit of a page at its read number ``read``, from 0."""
    at = page * config.page_bytes
    return np.array([[at, read, at + byte, at + byte, 1, 1 << bit]])


def swap(config, page, read, other):
    """Exchange two pages."""
    size, beyond = config.page_bytes, _beyond(config)
    a, b = page * size, other * size
    return np.array([[a, read, beyond, a, size, 0], [a, read, a, b, size, 0], [a, read, b, beyond, size, 0]])


def replay(config, page, read):
    """Return the content of the previous read."""
    size, beyond = config.page_bytes, _beyond(config)
    at = page * size
    return np.array([[at, read - 1, beyond, at, size, 0], [at, read, at, beyond, size, 0]])


def truncate(config, page, read, left):
    """Put zeros behind the first ``left`` bytes of a page."""
    at = page * config.page_bytes
    return np.array([[at, read, at + left, _beyond(config), config.page_bytes - left, 0]])


def _beyond(config):
    """Return a place behind the pages and their guards."""
    return config.host_pages * config.page_bytes + (1 << 20)
