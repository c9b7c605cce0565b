"""Stamps of entries: their numbers return, and no old one is taken for a new one."""

import pytest

from hw.oram.config import OramConfig
from hw.oram.core.position import stamps
from hw.oram.core.position.stamps import number_bits, stamp_bits

PARTS = 8


def kept_ages(window, log, bits, phase):
    """Return all ages with which a check may keep an entry that operation ``phase`` kept; loads of its
    bucket are up to ``log`` operations apart.
    """
    size = (1 << bits) // PARTS
    most = stamps._parts_kept(window, size)
    kept, longest = [], 0
    for age in range(1, (1 << bits) + log + 1):
        if age > longest + log:
            break
        now = phase + age
        if ((now // size) - (phase // size)) % PARTS <= most:
            kept.append(age)
            longest = age
    return kept


@pytest.mark.parametrize(
    ("window", "log"),
    [(1, 16), (24, 32), (24, 48), (148, 160), (200, 201), (532, 1248), (300, 2000), (65, 66)],
)
def test_numbers_suffice(window, log):
    """Stamps of the window are kept. A kept stamp is younger than the wrap of the numbers."""
    bits = stamp_bits(window=window, log=log)
    for phase in range((1 << bits) // PARTS):
        kept = kept_ages(window, log, bits, phase)
        assert kept[:window] == [*range(1, window + 1)]
        assert kept[-1] < 1 << bits


@pytest.mark.parametrize("touch", ["one", "both"])
@pytest.mark.parametrize("value_bytes", [8, 64, 512])
def test_the_log_is_longer_than_the_window(value_bytes, touch):
    for inflight in (4, 128, 256):
        config = OramConfig(log_n=18, value_bytes=value_bytes, touch=touch, inflight=inflight)
        assert config.position.log > config.window
        assert 1 << number_bits(config) > config.window + config.position.log
