"""Sealed pages against the golden model, bit for bit, and the cycle of each beat."""

import functools

import numpy as np
import pytest

from hw.lib.place import InlinePlacer
from hw.oram.core.crypto.page_seal import PageSeal
from sim.golden.oram import gcm
from tests.support.oram.pages import SHAPES, run_pages, runs


@functools.cache
def unit(name):
    return PageSeal(SHAPES[name], InlinePlacer())


@pytest.mark.sample(2)
@pytest.mark.parametrize(("name", "request_stall", "stall", "seed"), runs(soak=4))
def test_pages(name, request_stall, stall, seed):
    shape, rng = SHAPES[name], np.random.default_rng(seed)
    key, count = rng.bytes(16), 8 + 48 // shape.beats
    which = rng.integers(0, 1 << 48, (2, count), np.uint64)
    pages = rng.integers(0, 256, (count, shape.page_bytes), np.uint8)
    nonces = [{"page": int(page), "version": int(version)} for page, version in which.T]
    found = run_pages(
        unit(name), shape, key, nonces, pages, request_stall=request_stall, stall=stall, seed=seed
    )
    cipher = gcm.Gcm(key, tag_bytes=shape.mac_bits // 8)
    np.testing.assert_array_equal(found.pages(shape), gcm.seal_pages(cipher, *which, pages[:, 16:]))
    ends = found.taken[shape.beats - 1 :: shape.beats]
    starts = [end + PageSeal.LATENCY for end in ends]
    assert list(found.beats) == [start + n for start in starts for n in range(shape.beats)]
    assert found.lasts == [start + shape.beats - 1 for start in starts]
    if not request_stall and not stall:
        assert found.taken == list(range(found.taken[0], found.taken[0] + count * shape.beats))
