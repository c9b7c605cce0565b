"""The golden attention command against softmax in floating point."""

import numpy as np
import pytest

from hw.attention.driver.formats import output_scaling, scaling
from hw.network.attention.config import AttentionUnitConfig
from hw.network.commands import AttentionCommand, HeadTensor
from hw.network.scratchpad.shape import GranuleShape
from sim.golden.attention.formats import Arithmetic
from sim.golden.program_attention import DEFAULT, attention


@pytest.mark.parametrize("causal", [False, True])
def test_attention_of_heads_side_by_side(causal):
    """Queries, keys and values of two heads in one row of 12 granules, results in rows of four."""
    rng = np.random.default_rng(3)
    tokens, heads, head_dim, base = 37, 2, 32, 1000
    memory = rng.integers(-128, 128, (1024, 16), dtype=np.int8)
    before = memory.copy()
    scores = scaling(softmax_scale=32**-0.5, q_scale=0.02, k_scale=0.03)
    output = output_scaling("int8", 3.0)
    tensors = {
        name: HeadTensor(base=base + at * 4, pitch=12, step=2) for at, name in enumerate(("q", "k", "v"))
    }
    command = AttentionCommand(
        heads=heads,
        queries=tokens,
        keys=tokens,
        head_dim=head_dim,
        causal=causal,
        **tensors,
        out=HeadTensor(base=500, pitch=4, step=2),
        multiplier=scores.multiplier,
        shift=scores.shift,
        output_multiplier=output.multiplier,
        output_shift=output.shift,
    )
    attention(command, memory)
    rows = before[(base + np.arange(tokens)[:, None] * 12 + np.arange(12)) % 1024].reshape(tokens, 192)
    found = memory[500 : 500 + 4 * tokens].reshape(tokens, 64)
    for head in range(heads):
        q, k, v = (rows[:, at + 32 * head :][:, :32].astype(float) for at in (0, 64, 128))
        logits = q @ k.T * (32**-0.5 * 0.02 * 0.03)
        if causal:
            logits = np.where(np.tri(tokens, dtype=bool), logits, -np.inf)
        weights = np.exp(logits - logits.max(axis=1, keepdims=True))
        exact = weights @ v / weights.sum(axis=1, keepdims=True) * 3
        assert np.abs(found[:, 32 * head :][:, :32] - np.clip(exact, -128, 127)).max() <= 0.6
    memory[500 : 500 + 4 * tokens] = before[500 : 500 + 4 * tokens]
    assert (memory == before).all()


def test_its_arithmetic_is_that_of_the_unit():
    core = AttentionUnitConfig(shape=GranuleShape()).core
    assert (
        Arithmetic(
            tile_keys=core.tile_keys,
            streams=core.streams,
            probability_bits=core.probability_bits,
            exp_segments=core.exp_segments,
        )
        == DEFAULT
    )
