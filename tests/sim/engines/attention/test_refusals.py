"""What the attention adapter refuses."""

import re

import numpy as np
import pytest

from hw.errors import InputError
from sim.engines.attention.adapter import ADAPTER
from tests.support.attention.tensors import CONFIG, OPTIONS, changed, floats, with_, without

INT8 = np.zeros((2, 5, 32), np.int8)
LENGTHS = np.array([2, 3])
BITS = np.ones((2, 1), bool)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (without("v"), "tensor v must be given as [heads, tokens, size], not 'missing'"),
        (with_(bias=np.zeros(3)), "tensor name must be one of alibi_slopes, bitmap, "),
        (with_(bitmap_01=BITS), "tensor name must be one of alibi_slopes, bitmap, "),
        (with_(q=INT8.astype(np.int16)), "dtype of q must be int8 or floating point, not 'int16'"),
        (with_(q=np.zeros((5, 32))), "shape of q must be [heads, tokens, size], not (5, 32)"),
        (
            with_(q=np.zeros((2, 5, 33))),
            "head size of q must be from 1 to 32, folds * lanes of the configuration, not 33",
        ),
        (with_(v=np.zeros((1, 7, 0))), "head size of v must be from 1 to 32, "),
        (with_(k=np.zeros((1, 7, 16))), "head size of k must be 32, that of q, not 16"),
        (with_(q=np.zeros((2, 0, 32))), "tokens of q must be at least 1, not 0"),
        (
            with_(
                k=np.zeros((1, 65537, 32), np.int8),
                v=np.zeros((1, 65537, 32), np.int8),
                k_scale=np.ones(1),
                v_scale=np.ones(1),
            ),
            "tokens of k must be from 1 to 65536, not 65537",
        ),
        (with_(k=np.zeros((0, 7, 32))), "heads of k must be at least 1, not 0"),
        (with_(v=np.zeros((1, 8, 32))), "shape of v must be [1, 7, ...], as k, not (1, 8, 32)"),
        (
            with_(q=np.zeros((3, 5, 32)), k=np.zeros((2, 7, 32)), v=np.zeros((2, 7, 32))),
            "heads of q must be a multiple of the 2 heads of k, not 3",
        ),
        (
            with_(q=np.full((2, 5, 32), np.nan)),
            "tensor q must be finite wherever a query reads it, not 'NaN or infinity'",
        ),
        (with_(k=np.full((1, 7, 32), np.inf)), "tensor k must be finite wherever a query reads it"),
        (with_(q=INT8), "q_scale must be given beside an int8 q, not 'missing'"),
        (with_(per_channel=2), "per_channel must be a whole number from 0 to 1, not 2"),
        (with_(per_channel=1, k_scale=np.ones(1)), "per_channel must be 0 where k_scale is given, not 1"),
        (
            with_(per_channel=1, q=INT8, q_scale=np.ones(1)),
            "per_channel must be 0 where q is int8, not 1",
        ),
        (
            with_(q_scale=np.float64(0)),
            "q_scale must be one positive number, or one for each of 2 heads, not 0.0",
        ),
        (with_(v_scale=np.float64("nan")), "v_scale must be one positive number, not nan"),
        (with_(k_scale=np.ones(2)), "k_scale must be one positive number, not [1.0, 1.0]"),
        (
            with_(q_scale=np.ones(30)),
            "q_scale must be one positive number, or one for each of 2 heads, not 'of shape",
        ),
        (with_(softmax_scale=np.float64(-1)), "softmax_scale must be one positive number, or one for"),
        (with_(softmax_scale=np.float64(1e30)), "softmax_scale * q_scale * k_scale must be from "),
        (with_(output_fraction=np.int64(16)), "output_fraction must be a whole number from 0 to 15, not 16"),
        (
            with_(output_fraction=np.float64(3)),
            "output_fraction must be a whole number from 0 to 15, not 3.0",
        ),
        (
            with_(output_fraction=np.arange(3)),
            "output_fraction must be a whole number from 0 to 15, not [0, 1, 2]",
        ),
        (
            with_(output_scale=np.float64(1)),
            "output_scale must be left out where results are int16, not 1.0",
        ),
        (with_(causal=np.int64(2)), "causal must be a whole number from 0 to 1, not 2"),
        (with_(window=np.int64(-1)), "window must be a whole number from 0 to 65536, not -1"),
        (with_(window=np.float64(5)), "window must be a whole number from 0 to 65536, not 5.0"),
        (with_(pack=np.int64(3)), "pack must be a whole number from 0 to 2, not 3"),
        (
            with_(logit_cap=np.float64(30)),
            "logit_cap must be left out: the configuration has no logit_cap, not 30.0",
        ),
        (
            with_(alibi_slopes=np.ones(2)),
            "alibi_slopes must be left out: the configuration has no alibi, not ",
        ),
        (with_(query_lengths=LENGTHS), "key_lengths must be given beside query_lengths, not 'missing'"),
        (with_(key_lengths=LENGTHS), "query_lengths must be given beside key_lengths, not 'missing'"),
        (
            with_(sequence_lengths=LENGTHS, key_lengths=LENGTHS),
            "sequence_lengths must be left out beside query_lengths and key_lengths, not 'given'",
        ),
        (
            with_(sequence_lengths=LENGTHS),
            "sum of sequence_lengths must be 7, the tokens of the tensor, not 5",
        ),
        (
            with_(query_lengths=np.array([5, 0]), key_lengths=np.array([3, 4])),
            "query_lengths must be a list of whole numbers of at least 1, not [5, 0]",
        ),
        (
            with_(query_lengths=np.array([2.0, 3.0]), key_lengths=np.array([3, 4])),
            "query_lengths must be a list of whole numbers of at least 1, not [2.0, 3.0]",
        ),
        (
            with_(query_lengths=LENGTHS, key_lengths=np.array([3, 3, 1])),
            "key_lengths must be as many as query_lengths: 2, not 3",
        ),
        (
            with_(query_lengths=LENGTHS, key_lengths=np.array([3, 4]), bitmap=BITS),
            "bitmap must be bitmap_0, bitmap_1, ... where there are several sequences, not 'given'",
        ),
        (with_(bitmap=BITS, bitmap_0=BITS), "bitmap must be left out beside bitmap_0, not 'given'"),
        (with_(bitmap_1=BITS), "tensor name must be of a sequence: there are 1, not 'bitmap_1'"),
        (
            with_(bitmap=BITS.astype(float)),
            "dtype of bitmap must be bool, or whole numbers 0 and 1, not 'float64'",
        ),
        (
            with_(bitmap=2 * BITS.astype(int)),
            "dtype of bitmap must be bool, or whole numbers 0 and 1, not 'int64'",
        ),
        (
            with_(bitmap=np.ones((3, 2, 1), bool)),
            "shape of bitmap must be [query blocks, key tiles], or that for each of 2 heads, not (3, 2, 1)",
        ),
        (
            with_(bitmap=np.ones((1, 1), bool)),
            "shape of the bitmap must be [2, 1]: blocks of 4 queries and 16 keys",
        ),
        (
            with_(bitmap=BITS, bitmap_keys=np.int64(24)),
            "bitmap_keys must be a multiple of 16, the block of the engine, not 24",
        ),
        (
            with_(bitmap=BITS, bitmap_queries=np.int64(3)),
            "bitmap_queries must be a multiple of 4, the block of the engine, not 3",
        ),
        (
            with_(bitmap_keys=np.int64(16)),
            "bitmap must be given beside bitmap_queries and bitmap_keys, not 'missing'",
        ),
    ],
)
def test_wrong_tensors_are_refused(change, message):
    with pytest.raises(InputError, match=re.escape(message)):
        ADAPTER.job(change(floats()), CONFIG)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (with_(logit_cap=np.float64(-2)), "logit_cap must be one positive number, not -2.0"),
        (with_(logit_cap=np.float64(1e9)), "logit cap must be from "),
        (
            with_(alibi_slopes=np.ones(3)),
            "alibi_slopes must be one number for each of 2 heads, not [1.0, 1.0, 1.0]",
        ),
        (with_(alibi_slopes=np.array([1.0, -1.0])), "alibi_slopes must be at least 0 and finite, not -1.0"),
        (with_(alibi_slopes=np.array([1.0, 100.0])), "slope must be from 0 to "),
    ],
)
def test_wrong_options_are_refused(change, message):
    with pytest.raises(InputError, match=re.escape(message)):
        ADAPTER.job(change(floats()), OPTIONS)


POOL = {
    "block_table": np.array([[2, 0, -1], [1, 2, 0]]),
    "page_keys": np.int64(32),
    "query_lengths": np.array([2, 3]),
    "key_lengths": np.array([60, 70]),
}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            without("page_keys"),
            "page_keys must be given beside block_table, not 'missing'",
        ),
        (without("block_table"), "block_table must be given beside page_keys, not 'missing'"),
        (with_(page_keys=np.int64(16)), "page_keys must be a power of two from 32 to 65536, not 16"),
        (with_(page_keys=np.int64(48)), "page_keys must be a power of two from 32 to 65536, not 48"),
        (with_(page_keys=np.int64(2**17)), "page_keys must be a whole number from 1 to 65536, not 131072"),
        (with_(page_keys=np.int64(64)), "tokens of k must be a multiple of 64, the keys of a page, not 96"),
        (
            with_(block_table=POOL["block_table"] * 1.0),
            "dtype of block_table must be whole numbers, not 'float64'",
        ),
        (
            with_(block_table=POOL["block_table"][:1]),
            "shape of block_table must be [2, 3] or wider: a row for each sequence, its pages of 32 keys, ",
        ),
        (with_(block_table=POOL["block_table"][:, :2]), "shape of block_table must be [2, 3] or wider: "),
        (
            with_(block_table=POOL["block_table"] + 1),
            "block_table must be a page from 0 to 2 for every key, not 3",
        ),
        (
            with_(key_lengths=np.array([65, 70])),
            "block_table must be a page from 0 to 2 for every key, not -1",
        ),
        (
            lambda tensors: {name: of for name, of in tensors.items() if "lengths" not in name},
            "key_lengths must be given beside block_table, not 'missing'",
        ),
        (without("key_lengths"), "key_lengths must be given beside query_lengths, not 'missing'"),
    ],
)
def test_wrong_pages_are_refused(change, message):
    tensors = floats(keys=96) | POOL
    config = changed(CONFIG, streams=2, paged=True)
    ADAPTER.job(tensors, config)
    with pytest.raises(InputError, match=re.escape(message)):
        ADAPTER.job(change(tensors), config)


@pytest.mark.parametrize("name", ["block_table", "page_keys"])
def test_pages_are_refused_without_their_gates(name):
    with pytest.raises(InputError, match=f"{name} must be left out: the configuration is not paged, not "):
        ADAPTER.job(floats(keys=96) | {name: POOL[name]}, CONFIG)


def test_formats_of_other_outputs_are_refused():
    for output, name in (
        ("int8", "output_fraction"),
        ("bfloat16", "output_fraction"),
        ("bfloat16", "output_scale"),
    ):
        message = f"{name} must be left out where results are {output}"
        with pytest.raises(InputError, match=re.escape(message)):
            ADAPTER.job(floats() | {name: np.int64(1)}, changed(CONFIG, output=output))
    with pytest.raises(InputError, match=r"^v_scale / output_scale must be from"):
        ADAPTER.job(floats() | {"output_scale": np.float64(1e-9)}, changed(CONFIG, output="int8"))
