"""Opened pages against the golden model: content, verdict, and their cycles."""

import functools

import numpy as np
import pytest

from hw.lib.place import InlinePlacer
from hw.oram.core.crypto.page_open import PageOpen
from sim.golden.oram import gcm
from tests.support.oram.images import open_pages
from tests.support.oram.pages import SHAPES, run_pages, runs


@functools.cache
def unit(name):
    return PageOpen(SHAPES[name], InlinePlacer())


def spoil(rng, sealed):
    """Flip one bit of the tag, of the unused end of a short tag, or of the ciphertext, in every other
    page.
    """
    size = sealed.shape[1]
    spoilt = rng.permutation(len(sealed)) < len(sealed) // 2
    for n in np.flatnonzero(spoilt):
        byte = rng.choice([rng.integers(8), rng.integers(16), rng.integers(16, size), size - 1])
        sealed[n, byte] ^= 1 << rng.integers(8)


@pytest.mark.sample(2)
@pytest.mark.parametrize(("name", "request_stall", "stall", "seed"), runs(soak=4))
def test_pages(name, request_stall, stall, seed):
    shape, rng = SHAPES[name], np.random.default_rng(seed)
    key, count = rng.bytes(16), 8 + 48 // shape.beats
    which = rng.integers(0, 1 << 48, (2, count), np.uint64)
    content = rng.integers(0, 256, (count, shape.page_bytes - 16), np.uint8)
    cipher = gcm.Gcm(key, tag_bytes=shape.mac_bits // 8)
    sealed = gcm.seal_pages(cipher, *which, content)
    spoil(rng, sealed)
    which[:, -1] = which[:, -2]  # the last page is in another's place, or outdated
    nonces = [{"page": int(page), "version": int(version)} for page, version in which.T]
    found = run_pages(
        unit(name), shape, key, nonces, sealed, request_stall=request_stall, stall=stall, seed=seed
    )
    opened, genuine = open_pages(cipher, *which, sealed)
    assert not genuine.all()
    assert genuine.any()
    pages = found.pages(shape)
    np.testing.assert_array_equal(pages[:, 16:], opened)
    assert not pages[:, :16].any()
    ends = found.taken[shape.beats - 1 :: shape.beats]
    begins = found.taken[:: shape.beats]
    assert len(found.arrived) == count
    assert all(there < begin for there, begin in zip(found.arrived, begins, strict=True))
    assert list(found.beats) == [cycle + PageOpen.LATENCY for cycle in found.taken]
    assert found.lasts == [cycle + PageOpen.LATENCY for cycle in ends]
    assert found.verdicts == {
        cycle + PageOpen.VERDICT_LATENCY: right for cycle, right in zip(ends, genuine.tolist(), strict=True)
    }
    if not request_stall and not stall:
        assert found.taken == list(range(found.taken[0], found.taken[0] + count * shape.beats))
