"""Pages in beats at the rate of the AES lanes."""

import functools

import numpy as np

from hw.lib.place import InlinePlacer
from hw.oram.config import OramConfig
from hw.oram.core.pages.opener import page_shape
from sim.golden.oram import gcm
from tests.support.oram.blocks import bits, round_keys
from tests.support.oram.timed import keyed, run_timed
from tests.support.oram.workloads import SMALLEST

#: By AES lanes; with one, a page takes 48 blocks, and the keystream is 32 ahead.
CONFIGS = {
    1: OramConfig(**SMALLEST, aes_lanes=1, slots=46),
    2: OramConfig(**SMALLEST, aes_lanes=2, mac_bits=96),
    4: OramConfig(**SMALLEST, aes_lanes=4),
}
#: Approximate beats of a run.
BEATS = 28


@functools.cache
def unit(kind, lanes):
    return kind(CONFIGS[lanes], InlinePlacer())


def case(rng, config):
    """Return a cipher with its key, pages and versions, and their plain text."""
    key, count = rng.bytes(16), -(-BEATS // config.page_beats)
    which = rng.integers(0, 1 << 48, (2, count), np.uint64)
    pages = rng.integers(0, 256, (count, config.page_bytes), np.uint8)
    return key, gcm.Gcm(key, tag_bytes=config.mac_bits // 8), which, pages


def nonce(page, version):
    return int(page) | int(version) << 48


def beats_of(config, begins, pages):
    """Return the beats of pages by cycle, at their rate."""
    pace = config.page_beat_cycles
    return {
        begin + pace * n: bits(beat)
        for begin, page in zip(begins, pages, strict=True)
        for n, beat in enumerate(page.reshape(-1, 64))
    }


def run(dut, config, key, sent, watched, **rest):
    shape = page_shape(config)
    before = keyed(dut.power, shape, key)
    return run_timed(dut, sent, watched, before=before, constants=round_keys(dut, key), **rest)
