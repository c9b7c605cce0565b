"""Errors of the golden attention model against exact softmax: the bounds of docs/attention-figures.md."""

import numpy as np
import pytest

from sim.engines.attention.accuracy import measured
from sim.golden.attention.formats import EXP_SEGMENTS, PROBABILITY_BITS

#: Relative RMS error up to 8,192 keys for each number of probability bits, flat logits and any logits.
BOUNDS = {20: (3.5e-4, 3.5e-4), 16: (3.5e-4, 3e-3), 12: (3e-3, 3e-2), 8: (4e-2, 3e-1)}


@pytest.mark.sample(12)
@pytest.mark.parametrize("spread", [0.02, 1.0, 2.0, 3.0, 4.0, 8.0])
@pytest.mark.parametrize("bits", PROBABILITY_BITS)
@pytest.mark.parametrize("segments", EXP_SEGMENTS)
def test_errors_of_formats_stay_within_the_page_s_bounds(spread, bits, segments):
    bound = BOUNDS[bits][spread > 1]
    for keys in (500, 8192):
        rms, largest = measured(
            keys=keys, spread=spread, queries=24, seed=keys, probability_bits=bits, exp_segments=segments
        )
        assert rms <= bound
        assert largest <= 4 * bound, (rms, largest)


@pytest.mark.parametrize(("bits", "lead"), [(16, 8), (20, 10)])
def test_sinks_cost_the_others_their_bits(bits, lead):
    def error(sink, streams=1):
        options = {"probability_bits": bits, "streams": streams}
        return measured(keys=1024, spread=1.0, queries=24, sink=sink, **options)[0]

    assert error(lead) < 1e-2 < error(lead + 3)
    assert error(lead, streams=4) < 0.6 * error(lead)


@pytest.mark.sample(14)
@pytest.mark.parametrize("spread", [0.02, 1.0, 3.0, 8.0])
@pytest.mark.parametrize(
    "changes",
    [
        {"tensors": {"causal": True}},
        {"tensors": {"causal": True, "window": 100}},
        {"tensors": {"window": 700}},
        {"tensors": {"bitmap": np.arange(3 * 47).reshape(3, 47) % 5 < 2, "bitmap_queries": 16}},
        {"tensors": {"logit_cap": 30.0}},
        {"tensors": {"logit_cap": 50.0}},
        {"tensors": {"alibi_slopes": 0.5}},
        {"tensors": {"alibi_slopes": 1 / 256}},
        {"tensors": {"logit_cap": 30.0, "alibi_slopes": [0.05] * 4, "causal": True}, "heads": 4},
        {"size": 128},
        {"size": 80, "heads": 3},
    ],
    ids=[
        "causal",
        "causal window",
        "window",
        "sparse",
        "cap 30",
        "cap 50",
        "slope 1/2",
        "slope 1/256",
        "all but sparse",
        "head of 128",
        "head of 80",
    ],
)
@pytest.mark.parametrize("streams", [1, 4])
def test_errors_of_modes_stay_below_a_thousandth(spread, changes, streams):
    # A bit of a bitmap is for 64 keys, of one stream or of four.
    shape = {"streams": streams, "tile_keys": 64 // streams}
    rms, largest = measured(keys=3000, queries=48, spread=spread, **shape, **changes)
    assert rms <= 5e-4
    assert largest <= 2e-3


@pytest.mark.parametrize("spread", [0.02, 3.0])
def test_errors_of_results_are_their_own_rounding(spread):
    for keys in (40, 2000):
        assert measured(keys=keys, spread=spread, output="int8")[1] <= 0.52 / 127  # of a step
        rms, largest = measured(keys=keys, spread=spread, output="bfloat16")
        assert rms <= 2e-3
        assert largest <= 2.0**-8 + 2e-4


@pytest.mark.soak
@pytest.mark.parametrize("spread", [1.0, 2.0, 2.5, 3.0, 3.5, 4.0, 6.0])
@pytest.mark.parametrize("head_dim", [32, 64, 128])
def test_twenty_bits_stay_within_their_bounds_for_many_draws(spread, head_dim):
    for keys, bound in ((8192, 5e-4), (65536, 1.5e-3)):
        for seed in range(4):
            assert measured(keys=keys, spread=spread, seed=seed, size=head_dim)[0] <= bound
