import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hw.errors import InputError
from hw.scheduler.graph.graph import Operator, Tensor
from hw.scheduler.plan.array import compute_cycles, share_array


def group_of(*macs):
    members = tuple(
        Operator(name=f"o{index}", kind="conv", inputs=(f"t{index}",), outputs=(f"t{index + 1}",), macs=each)
        for index, each in enumerate(macs)
    )
    return Operator(
        name="g",
        kind="group",
        inputs=("t0",),
        outputs=(f"t{len(macs)}",),
        macs=sum(macs),
        members=members,
        inner=tuple(Tensor(name=f"t{index}", size_bytes=32) for index in range(1, len(macs))),
    )


def test_a_plain_operator_has_the_whole_array():
    operator = Operator(name="o", kind="conv", inputs=("x",), outputs=("y",), macs=1001)
    assert share_array(operator, 100) == (100,)
    assert compute_cycles(operator, 100) == 11


@given(macs=st.lists(st.integers(0, 200), min_size=1, max_size=3), array=st.integers(3, 12))
def test_no_other_way_to_share_is_faster(macs, array):
    group = group_of(*macs)
    shares = share_array(group, array)
    assert sum(shares) <= array
    ways = itertools.product(range(1, array + 1), repeat=len(macs))
    best = min(
        max(-(-each // share) for each, share in zip(macs, way, strict=True))
        for way in ways
        if sum(way) <= array
    )
    assert compute_cycles(group, array) == best
    assert best * array >= sum(macs)


def test_an_array_smaller_than_the_group():
    with pytest.raises(InputError, match="macs_per_cycle must be at least 2, not 1"):
        share_array(group_of(5, 5), 1)
    with pytest.raises(InputError, match="macs_per_cycle must be at least 1, not 0"):
        compute_cycles(Operator(name="o", kind="conv", inputs=("x",), outputs=("y",)), 0)
