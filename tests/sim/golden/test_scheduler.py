"""The scheduler's golden model against the same function word by word, and against known values."""

import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hw.scheduler.graph.graph import Tensor, TensorKind
from hw.scheduler.program.dataflow import Dataflow, OperatorCall
from sim.golden import scheduler as golden
from sim.golden.scheduler import execute, operator_words, to_bytes, to_words
from tests.support.program.random_programs import operator_words as word_by_word


def as_numbers(words):
    return [int.from_bytes(row.astype("<u4").tobytes(), "little") for row in words]


def random_words(seed, count, lanes):
    return np.random.default_rng(seed).integers(0, 2**32, (count, lanes), np.uint32)


@settings(deadline=None, max_examples=60)
@given(
    seed=st.integers(0, 1000),
    operator=st.integers(0, 2**16 - 1),
    inputs=st.lists(st.integers(1, 40), max_size=3),
    outputs=st.lists(st.integers(1, 40), min_size=1, max_size=3),
    lanes=st.sampled_from([1, 2, 4, 8, 16]),
)
def test_an_operator_is_what_it_is_word_by_word(seed, operator, inputs, outputs, lanes):
    given_words = [random_words([seed, number], count, lanes) for number, count in enumerate(inputs)]
    found = operator_words(operator, given_words, outputs, lanes)
    flat = [word for words in given_words for word in as_numbers(words)]
    assert [as_numbers(words) for words in found] == word_by_word(operator, flat, outputs, 4 * lanes)


def test_blocks_change_nothing(monkeypatch):
    words = [random_words(1, 100, 8), random_words(2, 37, 8)]
    whole = operator_words(5, words, [90, 20], 8)
    monkeypatch.setattr(golden, "_BLOCK_WORDS", 16)
    for found, expected in zip(operator_words(5, words, [90, 20], 8), whole, strict=True):
        np.testing.assert_array_equal(found, expected)


def test_every_input_bit_changes_the_last_word():
    words = random_words(3, 6, 2)
    (before,) = operator_words(9, [words], [4], 2)
    for word in range(6):
        for bit in range(64):
            changed = words.copy()
            changed[word, bit // 32] ^= np.uint32(1 << bit % 32)
            (after,) = operator_words(9, [changed], [4], 2)
            assert (after[-1] != before[-1]).any(), (word, bit)


@pytest.mark.parametrize("swapped", [(0, 1), (2, 5)])
def test_positions_count(swapped):
    words = random_words(4, 8, 4)
    changed = words.copy()
    changed[list(swapped)] = words[list(reversed(swapped))]
    (before,), (after,) = (operator_words(1, [given_words], [8], 4) for given_words in (words, changed))
    assert (before[-1] != after[-1]).any()


def test_bytes_come_back_with_padding():
    content = np.arange(70, dtype=np.uint8)
    words = to_words(content, 32)
    assert words.shape == (3, 8)
    assert int(words[0, 1]) == 0x07060504
    np.testing.assert_array_equal(to_bytes(words), np.pad(content, (0, 26)))


def dataflow():
    return Dataflow(
        tensors=(
            Tensor(name="x", size_bytes=40, kind=TensorKind.INPUT),
            Tensor(name="a", size_bytes=64),
            Tensor(name="spilled", size_bytes=33),
            Tensor(name="y", size_bytes=96, kind=TensorKind.OUTPUT),
        ),
        homes={"x": 0, "spilled": 2, "y": 4},
        calls=(
            OperatorCall(operator=0, inputs=(0,), outputs=(1, 2)),
            OperatorCall(operator=1, inputs=(2, 1, 0), outputs=(3,)),
        ),
    )


def test_a_dataflow_gives_what_is_saved():
    flow = dataflow()
    assert [tensor.name for tensor in flow.sources] == ["x"]
    x = random_words(5, 2, 8)
    saved = execute(flow, {"x": x}, 32)
    assert set(saved) == {"spilled", "y"}
    a, spilled = word_by_word(0, as_numbers(x), [2, 2], 32)
    assert as_numbers(saved["spilled"]) == spilled
    (y,) = word_by_word(1, [*spilled, *a, *as_numbers(x)], [3], 32)
    assert as_numbers(saved["y"]) == y


def test_large_tensors_take_seconds():
    words = random_words(6, 300_000, 8)
    begin = time.process_time()
    (found,) = operator_words(3, [words], [300_000], 8)
    assert time.process_time() - begin < 10
    assert found.shape == words.shape
