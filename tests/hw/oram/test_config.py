"""Illegal configurations are refused."""

import pytest

from hw.errors import InputError
from hw.oram.config import OramConfig


@pytest.mark.parametrize(("touch", "most"), [("one", 20), ("both", 19)])
def test_a_key_has_bits_for_both_of_its_buckets(touch, most):
    OramConfig(key_bits=32, touch=touch, log_n=most)
    with pytest.raises(InputError, match=f"log_n must be up to {most} for keys of 32 bits, not {most + 1}"):
        OramConfig(key_bits=32, touch=touch, log_n=most + 1)


def test_deadlines_are_chosen_unless_they_are_given():
    assert 0 < OramConfig().record_sizes.touch_cycles < OramConfig(value_bytes=384).record_sizes.touch_cycles
    assert OramConfig(touch_cycles=77, settle_cycles=88).record_sizes.touch_cycles == 77
    for name in ("position_cycles", "touch_cycles", "settle_cycles"):
        with pytest.raises(InputError, match=f"{name} must be from 16 to 4096, not 15"):
            OramConfig(**{name: 15})


def test_ports_that_random_reads_do_not_pass():
    OramConfig(position_ports=2, log_n=8)
    with pytest.raises(InputError, match="position_ports must be more for so many keys, or interval_cycles"):
        OramConfig(position_ports=2)
    OramConfig(record_ports=2, touch_cycles=500, settle_cycles=500)
    with pytest.raises(InputError, match="record_ports must be more for so many keys, or interval_cycles"):
        OramConfig(record_ports=2)


def test_operations_between_issue_and_admission():
    """As many as a deadline of reads has intervals, unless they are given."""
    assert [OramConfig(value_bytes=size).issued for size in (8, 64, 384)] == [256, 128, 64]
    assert OramConfig(inflight=64).issued == 64
    with pytest.raises(InputError, match="inflight must be a power of two from 4 to 256, not 2"):
        OramConfig(inflight=2)
