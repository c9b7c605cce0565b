"""The demo's vocabulary, its lookups, and the capacity of its map."""

import numpy as np
import pytest

from hw.board import load_board
from hw.oram.driver.capacity import check_capacity
from hw.oram.sizing.lists import overflow_failure
from sim.engines.oram.adapter import ADAPTER
from sim.engines.oram.demo import CONFIG, DRAWS, SENTENCES, vocabulary
from sim.golden import minilm


@pytest.fixture(scope="module")
def lookups():
    for module in (minilm.PACKAGE, "safetensors", "tokenizers"):
        pytest.importorskip(module)
    return vocabulary()


def test_the_table_is_the_vocabulary(lookups):
    words = minilm.words()
    assert lookups.table.shape == words.shape == (30522, 384)
    assert (np.abs(lookups.table.astype(int)).max(axis=0) == 127).all()
    real = lookups.table * (np.abs(words).max(axis=0) / 127)
    assert np.abs(real - words).max() <= np.abs(words).max() / 254 * 1.001
    assert [minilm.word_of(row) for row in (101, 1996)] == ["[CLS]", "the"]


def test_two_sentences_of_equal_length_and_two_workloads_are_looked_up(lookups):
    text = minilm.paragraph()["text"]
    one, other, skewed, uniform = (phase.rows for phase in lookups.phases)
    assert all(sentence in text for sentence in SENTENCES)
    assert one.tolist() == minilm.tokens(SENTENCES[0])
    assert len(one) == len(other) == 15
    assert len(skewed) == len(uniform) == DRAWS
    assert np.median(skewed) < 1000 < 10_000 < np.median(uniform)
    tensors = lookups.tensors
    assert tensors["keys"][-2 * DRAWS - 30 : -2 * DRAWS].tolist() == [*one, *other]
    assert (tensors["values"][:30522].view(np.int8) == lookups.table).all()
    assert not tensors["values"][30522:].any()


def test_the_map_holds_it(lookups):
    check_capacity(CONFIG, load_board("u55c"))
    assert len(lookups.table) <= CONFIG.keys
    assert overflow_failure(CONFIG) < -40
    assert ADAPTER.job(lookups.tensors, CONFIG).played.outcomes[-1].status == 0


def test_boards_without_the_hosts_memory_have_none():
    assert ADAPTER.demo(load_board("zcu104")) is None
    assert ADAPTER.demo(load_board("u50")).config == CONFIG
