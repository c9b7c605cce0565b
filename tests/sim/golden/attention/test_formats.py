"""The integer functions of the attention formats: tables, cap, slopes, sums of streams, results, scales."""

import math
import struct
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hw.attention.driver.formats import (
    Output,
    bfloat16_values,
    cap_multiplier,
    output_scaling,
    scaling,
    slope_multiplier,
)
from hw.errors import InputError
from sim.golden.attention.formats import (
    EXP_SEGMENTS,
    PROBABILITY_BITS,
    alibi,
    bfloat16,
    capped,
    combined,
    exp2_table,
    probability_table,
    results,
    rounded_shift,
    tanh_table,
)

#: Largest relative error of y for each number of segments: half the largest gap, and the rounding of y.
EXP_ERRORS = {8: 4.9e-4, 16: 1.25e-4, 32: 3.5e-5}


def chord_gap(function, left, right):
    """Largest distance between a function and its chord, by trying points."""
    x = np.linspace(left, right, 4001)
    chord = function(left) + (x - left) / (right - left) * (function(right) - function(left))
    return float(np.abs(chord - function(x)).max())


@pytest.mark.parametrize("segments", EXP_SEGMENTS)
def test_exponential_table_is_the_minimax_line_of_every_segment(segments):
    def h(x):
        return 2.0**-x

    starts, drops = exp2_table(segments)
    for i in range(segments):
        left, right = i / segments, (i + 1) / segments
        assert starts[i] == round(2**18 * (h(left) - chord_gap(h, left, right) / 2))
        assert drops[i] == round(2**18 * (h(left) - h(right)))
    assert starts.max() < 2**18
    assert drops.max() < 2**15


@pytest.mark.parametrize("bits", PROBABILITY_BITS)
@pytest.mark.parametrize("segments", EXP_SEGMENTS)
def test_probabilities_are_powers_of_two_to_the_stated_error(bits, segments):
    p = probability_table(bits, segments)
    u = np.arange(len(p))
    exact = 2.0 ** (bits - u / 4096)
    assert (np.abs(p - exact) <= 0.5 + exact * EXP_ERRORS[segments]).all()
    assert p.min() >= 0
    assert p.max() <= 2**bits
    assert p[4095] >= 2 ** (bits - 1) * (1 - 2.0**-11)  # the key of the largest logit
    assert p[-1] == 0
    assert (np.diff(p) <= 0).all()


def test_tanh_table_is_the_minimax_line_of_every_segment_and_fits_its_widths():
    starts, rises = tanh_table()
    for i in range(0, 1024, 7):
        left, right = i / 128, (i + 1) / 128
        expected = 2**19 * (math.tanh(left) + chord_gap(np.tanh, left, right) / 2)
        assert starts[i] == min(round(expected), 2**19 - 1)
        assert rises[i] == round(2**19 * (math.tanh(right) - math.tanh(left)))
    assert starts.min() >= 0
    assert starts.max() < 2**19
    assert rises.min() >= 0
    assert rises.max() < 2**13


def test_capped_logits_are_odd_rising_and_within_the_cap():
    x = np.unique(np.concatenate([np.arange(-(2**14), 2**14), np.arange(-(2**23), 2**23, 1001)]))
    for multiplier in (1, 5909, cap_multiplier(50.0), 2**23 - 1):
        t = capped(x, multiplier)
        assert (np.diff(t) >= 0).all()
        assert np.abs(t).max() <= multiplier
        # 1.2 units of 2^-17 from table and rounding, half a unit of the result.
        assert np.abs(t - multiplier * np.tanh(x / 2**18)).max() <= 1.2 * multiplier / 2**17 + 0.5
        negative = capped(-x, multiplier)
        assert (np.abs(t + negative) <= 1).all()  # ties go up on both sides
    assert capped(np.array([0, -(2**23)]), 2**23 - 1).tolist()[0] == 0


def test_capped_logits_in_python_integers():
    starts, rises = (table.tolist() for table in tanh_table())
    rng = np.random.default_rng(0)
    corners = [0, 1, -1, 2047, 2048, 2**21 - 1, 2**21, -(2**21), 2**23 - 1, -(2**23)]
    for x in [*corners, *rng.integers(-(2**22), 2**22, 500).tolist()]:
        c = int(rng.integers(0, 2**23))
        a = min(abs(x), 2**21 - 1)
        i, w = a >> 11, a & 2047
        h = min((2**11 * starts[i] + rises[i] * w + 2**12) >> 13, 2**17 - 1)
        expected = ((h if x >= 0 else -h) * c + 2**16) >> 17
        assert capped(np.array([x]), c).tolist() == [expected]
        assert -(2**23) <= expected < 2**23


@given(st.integers(-(2**23), 2**23 - 1), st.integers(0, 2**26 - 1), st.integers(-65535, 65535))
def test_slopes_in_python_integers(t, slope, distance):
    expected = max(-(2**23), t - ((slope * abs(distance) + 2**11) >> 12))
    assert alibi(np.array([t]), slope, np.array([distance])).tolist() == [expected]


@given(st.integers(-(2**40), 2**40), st.integers(0, 70))
def test_rounded_shift_rounds_to_nearest_with_ties_up(value, shift):
    got = int(rounded_shift(np.array([value]), np.array([shift]))[0])
    assert got == math.floor(Fraction(value, 2**shift) + Fraction(1, 2))


@given(st.lists(st.tuples(st.integers(-2048, 2048), st.integers(-(2**39), 2**39)), min_size=1, max_size=16))
def test_streams_are_combined_in_any_order_and_a_stream_that_saw_nothing_does_not_count(streams):
    maxima = np.array([[m] for m, _ in streams])
    outputs = np.array([[[o]] for _, o in streams])
    totals = np.abs(outputs[:, :, 0])
    output, total = combined(maxima, outputs, totals)
    top = max(m for m, _ in streams)

    def rounded(value, m):
        return math.floor(Fraction(value, 2 ** (top - m)) + Fraction(1, 2))

    assert output.tolist() == [[sum(rounded(o, m) for m, o in streams)]]
    assert total.tolist() == [sum(rounded(abs(o), m) for m, o in streams)]
    again = combined(
        np.append(maxima[::-1], [[-4096]], axis=0),
        np.append(outputs[::-1], [[[0]]], axis=0),
        np.append(totals[::-1], [[0]], axis=0),
    )
    assert [part.tolist() for part in again] == [output.tolist(), total.tolist()]


def nearest_bfloat16(value):
    """The bfloat16 nearest to a fraction, ties to even, from exact arithmetic."""
    if value == 0:
        return 0
    sign, magnitude = (0x8000, -value) if value < 0 else (0, value)
    exponent = math.floor(math.log2(magnitude))
    while Fraction(2) ** exponent > magnitude:
        exponent -= 1
    while Fraction(2) ** (exponent + 1) <= magnitude:
        exponent += 1
    significand = round(magnitude / Fraction(2) ** (exponent - 7))  # Python rounds to even
    return sign | (((exponent + 127) << 7) + significand - 128)


@given(
    st.one_of(
        st.integers(-(2**44), 2**44),
        st.integers(-1024, 1024),
        # ties, and significands that carry
        st.builds(
            lambda m, s: (2 * m + 1) << s, st.one_of(st.integers(128, 255), st.just(255)), st.integers(0, 34)
        ),
    ),
    st.integers(19, 126),
)
def test_bfloat16_is_the_nearest_with_ties_to_even(value, shift):
    pattern = int(bfloat16(np.array([value]), shift)[0])
    assert pattern == nearest_bfloat16(Fraction(value, 2**shift))
    read = struct.unpack("<f", struct.pack("<I", pattern << 16))[0]
    assert float(bfloat16_values(np.array([pattern], np.uint16))[0]) == read


def test_bfloat16_equals_ml_dtypes():
    """Another implementation of the format, over all magnitudes."""
    ml_dtypes = pytest.importorskip("ml_dtypes")
    rng = np.random.default_rng(0)
    values = rng.integers(-(2**43), 2**43, 20_000) >> rng.integers(0, 43, 20_000)
    for shift in (19, 34, 126):
        theirs = (values * 2.0**-shift).astype(ml_dtypes.bfloat16).view(np.uint16)
        assert (bfloat16(values, shift) == theirs).all()


@settings(max_examples=200)
@given(
    bits=st.sampled_from(PROBABILITY_BITS),
    total_bits=st.integers(1, 37),
    ratio=st.floats(-146, 146),
    seed=st.integers(0, 2**32 - 1),
    fraction=st.integers(0, 15),
    multiplier=st.integers(2**16, 2**17 - 1),
    shift=st.integers(19, 47),
)
def test_results_in_python_integers_and_within_their_widths(
    bits, total_bits, ratio, seed, fraction, multiplier, shift
):
    rng = np.random.default_rng(seed)
    b = min(total_bits, 17 + bits)
    l = int(rng.integers(2 ** (b - 1), 2**b))  # noqa: E741 - the page's name
    o = round(l * ratio)
    n = (l << (17 + bits - b)) >> bits
    assert 2**16 <= n < 2**17
    r = (2**33 - 1) // n
    assert r < 2**17
    z = ((o + (1 << (b - 19) if b > 18 else 0)) >> (b - 18)) if b >= 18 else o << (18 - b)
    assert abs(z) < 2**26
    scaled = (r * multiplier + 2**16) >> 17
    assert scaled < 2**17

    def given(output):
        return results(np.array([[o]]), np.array([l]), output, bits).tolist()

    def rounded(value, s, width):
        return max(-(2 ** (width - 1)), min(2 ** (width - 1) - 1, (value + 2 ** (s - 1)) >> s))

    assert given(Output(fraction=fraction)) == [[rounded(z * r, 34 - fraction, 16)]]
    assert given(Output(kind="int8", multiplier=multiplier, shift=shift)) == [[rounded(z * scaled, shift, 8)]]
    assert given(Output(kind="bfloat16", multiplier=multiplier, shift=shift)) == [
        [nearest_bfloat16(Fraction(z * scaled, 2**shift))]
    ]


@pytest.mark.parametrize("kind", ["int8", "int16", "bfloat16"])
def test_rows_without_a_key_give_zeros(kind):
    output = Output(kind=kind, multiplier=2**16, shift=19)
    got = results(np.array([[5, -5]]), np.array([0]), output)
    assert got.dtype == output.dtype
    assert got.tolist() == [[0, 0]]


@given(st.floats(-13.9, 14.99))
def test_output_multiplier_keeps_seventeen_bits(exponent):
    factor = 2.0**exponent
    for kind in ("int8", "bfloat16"):
        output = output_scaling(kind, factor)
        assert 2**16 <= output.multiplier < 2**17
        assert abs(output.multiplier * 2.0 ** (17 - output.shift) / factor - 1) < 2.0**-16


@pytest.mark.parametrize("kind", ["int8", "int16", "bfloat16"])
@pytest.mark.parametrize("factor", [0.0, 2.0**-94, 2.0**15])
def test_output_scales_out_of_range_are_refused(kind, factor):
    with pytest.raises(InputError, match="v_scale / output_scale must be from"):
        output_scaling(kind, factor)


@given(st.floats(-46.9, 15.9), st.sampled_from([None, 1.0, 50.0]))
def test_scaling_keeps_seventeen_bits(exponent, cap):
    unit = 4096 * math.log2(math.e) if cap is None else 2**18 / cap
    scale = scaling(softmax_scale=2.0**exponent / unit, q_scale=1.0, k_scale=1.0, cap=cap)
    assert 1 <= scale.multiplier < 2**17
    assert 1 <= scale.shift <= 47
    if exponent > -30:
        assert abs(scale.multiplier * 2.0**-scale.shift / 2.0**exponent - 1) < 2.0**-16


@pytest.mark.parametrize("factor", [0.0, 1e-20, 1e12])
def test_scales_out_of_range_are_refused(factor):
    with pytest.raises(
        InputError, match=r"softmax_scale \* q_scale \* k_scale must be from 1\.2e-18 to 11\.1"
    ):
        scaling(softmax_scale=factor, q_scale=1.0, k_scale=1.0)


@pytest.mark.parametrize("cap", [0.0, -1.0, 1e-5, 1420.0, math.inf, math.nan])
def test_caps_out_of_range_are_refused(cap):
    with pytest.raises(InputError, match=r"logit cap must be from 0\.000169 to 1419\.57"):
        cap_multiplier(cap)


@pytest.mark.parametrize("slope", [-1.0, 2.78, math.inf, math.nan])
def test_slopes_out_of_range_are_refused(slope):
    with pytest.raises(InputError, match=r"slope must be from 0 to 2\.77259"):
        slope_multiplier(slope)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"fraction": 16}, "output fraction must be from 0 to 15"),
        (
            {"kind": "int8", "multiplier": 2**17, "shift": 20},
            "output multiplier must be from 65536 to 131071",
        ),
        ({"kind": "int8", "multiplier": 2**16, "shift": 48}, "output shift must be from 19 to 47"),
        ({"kind": "bfloat16", "multiplier": 2**16, "shift": 18}, "output shift must be from 19 to 126"),
    ],
)
def test_outputs_out_of_range_are_refused(changes, message):
    with pytest.raises(InputError, match=message):
        Output(**changes)
