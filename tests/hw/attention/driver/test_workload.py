"""Workloads of attention: what is refused, by itself and by a configuration; plain values; jobs."""

import dataclasses
import json

import numpy as np
import pytest
from pydantic import TypeAdapter

from hw.attention.config import AttentionConfig
from hw.attention.driver.workload import AttentionWorkload, bitmap_bits, bitmap_text
from hw.attention.engine import AttentionEngine
from hw.board import load_board
from hw.errors import InputError

BOARD = load_board("u55c")
PLAIN = {"heads": 4, "kv_heads": 2, "queries": (9, 20), "keys": (30, 40), "query_size": 64, "value_size": 32}
CONFIG = AttentionConfig(rows=4, lanes=32, folds=2, tile_keys=16)


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"heads": 0}, "heads must be a whole number of at least 1"),
        ({"heads": True}, "heads must be a whole number"),
        ({"kv_heads": 3}, "kv_heads must be 0 or a divisor of the 4 heads"),
        ({"kv_heads": -1}, "kv_heads must be a whole number of at least 0"),
        ({"queries": 9}, "queries must be a list of the tokens of each sequence"),
        ({"queries": ()}, "queries must be a list of the tokens of each sequence"),
        ({"keys": (30, 0)}, "keys must be a whole number from 1 to 65536"),
        ({"keys": (30,)}, "keys must be as many numbers as queries: 2"),
        ({"query_size": 0}, "query_size must be a whole number of at least 1"),
        ({"value_size": 0}, "value_size must be a whole number of at least 1"),
        ({"window": -1}, "window must be a whole number from 0"),
        ({"bitmap_keys": 1.5}, "bitmap_keys must be a whole number from 0"),
        ({"pack": 3}, "pack must be a whole number from 0 to 2"),
        ({"bitmaps": ((),)}, "bitmaps must be 0 or 2: one entry a sequence"),
        ({"bitmaps": ((), (("1",), ("1",)))}, "bitmaps of a sequence must be 0, 1 or 4, the heads"),
        ({"bitmaps": ((), (("10", "1"),))}, "bitmaps must be rows of equal length of 0 and 1"),
        ({"bitmaps": ((), (("12",),))}, "bitmaps must be rows of equal length of 0 and 1"),
        ({"page_keys": 48}, "page_keys must be 0 or a power of two from 1 to 65536, not 48"),
        ({"page_keys": "64"}, "page_keys must be a whole number from 0 to 65536, not '64'"),
        ({"settings": (0, 1)}, "settings must be empty, or a number for each of 4 heads"),
    ],
)
def test_refuses_what_no_engine_can_do(changes, complaint):
    with pytest.raises(InputError, match=complaint):
        AttentionWorkload(**PLAIN | changes)


def test_lists_are_tuples():
    tuples = PLAIN | {"settings": (0, 0, 1, 1), "bitmaps": ((), (("10", "11"),))}
    lists = tuples | {"queries": [9, 20], "keys": [30, 40], "settings": [0, 0, 1, 1]}
    found = AttentionWorkload(**lists | {"bitmaps": [[], [["10", "11"]]]})
    assert found == AttentionWorkload(**tuples)
    assert hash(found) == hash(AttentionWorkload(**tuples))
    with pytest.raises(InputError, match="queries must be a list of the tokens of each sequence"):
        AttentionWorkload(**PLAIN | {"queries": []})


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"query_size": 80}, "query_size must be at most 64, folds \\* lanes"),
        ({"value_size": 80}, "value_size must be at most 64, folds \\* lanes"),
        ({"logit_cap": True}, "logit_cap must be false: the configuration has no logit_cap"),
        ({"alibi": True}, "alibi must be false: the configuration has no alibi"),
        ({"page_keys": 64}, "page_keys must be 0: the configuration is not paged, not 64"),
        ({"heads": 12, "pack": 6}, "pack must be at most 4, the rows"),
        ({"bitmaps": ((), (("1" * 3,) * 5,)), "bitmap_keys": 24}, "bitmap_keys must be a multiple of 16"),
        ({"bitmaps": ((), (("1" * 3,) * 4,))}, "shape of the bitmap must be \\[5, 3\\]"),
    ],
)
def test_refuses_what_the_configuration_cannot_do(changes, complaint):
    with pytest.raises(InputError, match=complaint):
        AttentionEngine().predict(AttentionWorkload(**PLAIN | changes), CONFIG, BOARD)


def test_refuses_pages_of_less_than_a_tile():
    config = dataclasses.replace(CONFIG, streams=2, paged=True)
    complaint = r"page_keys must be 0 or at least 32, the streams \* tile_keys of the configuration, not 16"
    with pytest.raises(InputError, match=complaint):
        AttentionEngine().predict(AttentionWorkload(**PLAIN, page_keys=16), config, BOARD)


def test_a_workload_is_plain():
    """It goes to JSON and back, is equal if its fields are, and can be a key of a table."""
    bits = np.random.default_rng(0).random((5, 3)) < 0.5
    workload = AttentionWorkload(**PLAIN, causal=True, window=20, bitmaps=((), (bitmap_text(bits),)))
    adapter = TypeAdapter(AttentionEngine.workload_type)
    again = adapter.validate_json(json.dumps(adapter.dump_python(workload, mode="json")), strict=True)
    assert again == workload
    assert len({workload, again}) == 1
    assert (bitmap_bits(workload.bitmap(1, 3)) == bits).all()
    assert workload.bitmap(0, 3) is None


def test_heads_of_unlike_settings_are_jobs_of_their_own():
    def jobs(**changes):
        workload = AttentionWorkload(**PLAIN | changes)
        return AttentionEngine().predict(workload, CONFIG, BOARD).details["jobs"]

    assert jobs() == 2  # one a sequence
    assert jobs(settings=(0, 0, 1, 1)) == 4
    assert jobs(settings=(0, 1, 1, 0)) == 8
    other = dataclasses.replace(AttentionWorkload(**PLAIN), bitmaps=((), (("111",) * 5,) * 4)).bitmaps
    assert jobs(bitmaps=other) == 2
    assert jobs(bitmaps=((), (*other[1][:3], ("101",) * 5))) == 4
