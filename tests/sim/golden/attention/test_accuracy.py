"""Errors of the golden attention model against exact softmax: the bounds of docs/attention.md."""

import numpy as np
import pytest

from sim.golden.attention.accuracy import Trial, measured
from sim.golden.attention.formats import (
    EXP_SEGMENTS,
    PROBABILITY_BITS,
    Arithmetic,
)
from sim.golden.attention.mask import Mask

#: Relative RMS error up to 8,192 keys for each number of probability bits, flat logits and any logits.
BOUNDS = {20: (3.5e-4, 3.5e-4), 16: (3.5e-4, 3e-3), 12: (3e-3, 3e-2), 8: (4e-2, 3e-1)}


@pytest.mark.parametrize("spread", [0.02, 1.0, 2.0, 3.0, 4.0, 8.0])
@pytest.mark.parametrize("bits", PROBABILITY_BITS)
@pytest.mark.parametrize("segments", EXP_SEGMENTS)
def test_errors_of_formats_stay_within_the_page_s_bounds(spread, bits, segments):
    arithmetic = Arithmetic(probability_bits=bits, exp_segments=segments)
    bound = BOUNDS[bits][spread > 1]
    for keys in (500, 8192):
        rms, largest = measured(Trial(keys=keys, spread=spread, queries=24, arithmetic=arithmetic, seed=keys))
        assert rms <= bound
        assert largest <= 4 * bound, (rms, largest)


@pytest.mark.parametrize("spread", [0.02, 1.0, 3.0, 8.0])
@pytest.mark.parametrize(
    "changes",
    [
        {"mask": Mask(causal=True)},
        {"mask": Mask(causal=True, window=100)},
        {"mask": Mask(window=700)},
        {"mask": Mask(bitmap=np.arange(3 * 47).reshape(3, 47) % 5 < 2, tile_queries=16, tile_keys=64)},
        {"cap": 30.0},
        {"cap": 50.0},
        {"slope": 0.5},
        {"slope": 1 / 256},
        {"cap": 30.0, "slope": 0.05, "mask": Mask(causal=True), "heads": 4},
        {"head_dim": 128},
        {"head_dim": 80, "heads": 3},
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
    arithmetic = Arithmetic(probability_bits=20, streams=streams)
    trial = Trial(keys=3000, queries=48, spread=spread, arithmetic=arithmetic, **changes)
    rms, largest = measured(trial)
    assert rms <= 5e-4
    assert largest <= 2e-3


@pytest.mark.parametrize("spread", [0.02, 3.0])
def test_errors_of_results_are_their_own_rounding(spread):
    arithmetic = Arithmetic(probability_bits=20)
    for keys in (40, 2000):
        trial = Trial(keys=keys, spread=spread, arithmetic=arithmetic, output="int8")
        assert measured(trial)[1] <= 0.52 / 127  # of a step
        trial = Trial(keys=keys, spread=spread, arithmetic=arithmetic, output="bfloat16")
        rms, largest = measured(trial)
        assert rms <= 2e-3
        assert largest <= 2.0**-8 + 2e-4


@pytest.mark.soak
@pytest.mark.parametrize("spread", [1.0, 2.0, 2.5, 3.0, 3.5, 4.0, 6.0])
@pytest.mark.parametrize("head_dim", [32, 64, 128])
def test_twenty_bits_stay_within_their_bounds_for_many_draws(spread, head_dim):
    arithmetic = Arithmetic(probability_bits=20)
    for keys, bound in ((8192, 5e-4), (65536, 1.5e-3)):
        for seed in range(4):
            trial = Trial(
                keys=keys, spread=spread, queries=64, seed=seed, head_dim=head_dim, arithmetic=arithmetic
            )
            assert measured(trial)[0] <= bound
