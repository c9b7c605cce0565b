"""Illegal configurations are refused."""

import pytest

from hw.errors import InputError
from hw.oram.config import OramConfig


@pytest.mark.parametrize(("touch", "most"), [("one", 20), ("both", 19)])
def test_a_key_has_bits_for_both_of_its_buckets(touch, most):
    OramConfig(key_bits=32, touch=touch, log_n=most)
    with pytest.raises(InputError, match=f"log_n must be up to {most} for keys of 32 bits, not {most + 1}"):
        OramConfig(key_bits=32, touch=touch, log_n=most + 1)


def test_deadlines_follow_the_size_of_records():
    """Unless they are given: some six large records pass a port first."""
    small, large = OramConfig(), OramConfig(value_bytes=384)
    assert (small.touch_deadline, small.settle_deadline) == (352, 192)
    assert large.touch_deadline > 12 * large.record_beats
    assert large.settle_deadline > 10 * large.record_beats
    assert OramConfig(touch_cycles=77, settle_cycles=88).touch_deadline == 77
    for name in ("position_cycles", "touch_cycles", "settle_cycles"):
        with pytest.raises(InputError, match=f"{name} must be from 16 to 4096, not 15"):
            OramConfig(**{name: 15})


def test_ports_that_random_reads_do_not_pass():
    OramConfig(position_ports=2, log_n=8)
    with pytest.raises(InputError, match="position_ports must be more for so many keys, or interval_cycles"):
        OramConfig(position_ports=2)
