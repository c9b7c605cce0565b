# amaranth: UnusedElaboratable=no
"""Launches in which a memory answers with an error: each ends, says so, and leaves nothing behind."""

from __future__ import annotations

import random

import pytest

from examples.vadd.engine import VaddBody, VaddConfig, vadd_table
from hw.errors import InputError
from hw.lib.arguments import STATUS, ArgumentTable
from hw.lib.kernel import BodySignature, Kernel
from hw.lib.place import InlinePlacer
from tests.support.boards import small_board
from tests.support.gateware.calls import Call, break_every_port
from tests.support.gateware.streams import seeds

ADDRESS = {"a": 0x1_0000_0F80, "b": 0x2000, "c": 0x3_0000_4FC0}


def call(words, seed):
    rng = random.Random(seed)
    a, b = ([rng.getrandbits(32) for _ in range(words)] for _ in range(2))

    def packed(values):
        return b"".join((value % 2**32).to_bytes(4, "little") for value in values)

    def check(memories):
        expected = packed(x + y for x, y in zip(a, b, strict=True))
        assert memories["gmem2"].content(ADDRESS["c"], 4 * words) == expected

    content = {"gmem0": dict(enumerate(packed(a), ADDRESS["a"]))}
    content["gmem1"] = dict(enumerate(packed(b), ADDRESS["b"]))
    return Call({**ADDRESS, "words": words}, content, check)


@pytest.mark.parametrize("seed", seeds(2, 20))
def test_the_launch_after_an_error_is_as_after_reset(seed):
    """Of any number of bursts before and behind the wrong one, on memories that stall or do not."""
    rng = random.Random(seed)
    stall = 0.3 * (seed % 3)
    calls = [call(rng.randrange(1, 200), n) for n in range(rng.randrange(1, 4))]
    kernel = Kernel("k", vadd_table(), VaddBody(VaddConfig(), small_board(), InlinePlacer()))
    broken = break_every_port(kernel, calls, stall=stall, seed=seed)
    assert broken == {("gmem0", "read"), ("gmem1", "read"), ("gmem2", "write")}


def test_the_counter_is_the_shell_s_own():
    table = vadd_table()
    assert STATUS.name not in dict(BodySignature(table, data_width=64).members["counters"].shape)
    with pytest.raises(InputError, match="counters must be left out where there is no memory port, not "):
        BodySignature(ArgumentTable((STATUS,)), data_width=64)
