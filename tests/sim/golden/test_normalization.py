"""LayerNorm in integers beside onnxruntime's LayerNormalization and QuantizeLinear, and beside float64."""

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper

from hw.errors import InputError
from hw.network.normalization import (
    SLOPE_BITS,
    SPREAD_BITS,
    Z_BITS,
    channel_rows,
    epsilon_units,
    root,
    root_table,
    split_channels,
)
from sim.golden.normalization import layer_norm, normalized, statistics

#: Share of int8 elements that may differ, by 1.
SHARE = 1e-4
#: Channels with the shortest root, and their share.
SHORT, SHORT_SHARE = 312, 2e-4


def float64(stored, gain, bias, *, epsilon, scale):
    """Return LayerNorm of stored values in float64."""
    x = stored * float(scale)
    centered = x - x.mean(axis=1, keepdims=True)
    spread = (centered**2).mean(axis=1, keepdims=True) + float(np.float32(epsilon))
    return centered / np.sqrt(spread) * gain + bias


def onnxruntime_of(stored, gain, bias, *, epsilon, scale, out):
    """Return LayerNorm and its int8 by onnxruntime."""
    named = {"s": np.float32(scale), "g": gain, "b": bias, "o": np.float32(out), "z": np.int8(0)}
    nodes = [
        helper.make_node("Cast", ["q"], ["f"], to=TensorProto.FLOAT),
        helper.make_node("Mul", ["f", "s"], ["x"]),
        helper.make_node("LayerNormalization", ["x", "g", "b"], ["n"], epsilon=epsilon),
        helper.make_node("QuantizeLinear", ["n", "o", "z"], ["y"]),
    ]
    graph = helper.make_graph(
        nodes,
        "norm",
        [helper.make_tensor_value_info("q", TensorProto.INT16, stored.shape)],
        [helper.make_tensor_value_info("y", TensorProto.INT8, stored.shape)],
        [onnx.numpy_helper.from_array(np.asarray(value), name) for name, value in named.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    return session.run(None, {"q": stored})[0].astype(np.int64)


def drawn(rng, channels, kind, sigma):
    """Draw 600 rows of values."""
    values = rng.normal(0, sigma, (600, channels)) + rng.normal(0, sigma, (600, 1))
    if kind == "outliers":
        values[:, rng.integers(0, channels, 4)] *= 40
    elif kind == "near constant":
        values = rng.integers(-30000, 30000, (600, 1)) + (rng.random((600, channels)) < 0.01)
    return np.clip(np.rint(values), -32768, 32767).astype(np.int16)


def case_of(rng, stored, scale, epsilon):
    """Draw gains with which all channels fill int8, biases, and the scale of the result."""
    channels = stored.shape[1]
    ones, zeros = np.ones(channels), np.zeros(channels)
    normal = float64(stored, ones, zeros, epsilon=epsilon, scale=scale)
    gain = 1 / np.maximum(np.abs(normal).max(axis=0), 0.1) * rng.uniform(0.8, 1.2, channels)
    gain = (np.minimum(gain, 6 * np.median(gain)) * rng.choice([1, 1, -1], channels)).astype(np.float32)
    bias = rng.normal(0, 0.1, channels).astype(np.float32) * np.abs(gain)
    out = np.float32(np.abs(normal * gain + bias).max() / rng.uniform(100, 140))
    return gain, bias, out


@pytest.mark.parametrize(
    ("channels", "kind", "sigma"),
    [
        (384, "plain", 1500), (768, "plain", 8), (1024, "plain", 8000), (800, "plain", 100),
        (SHORT, "plain", 100), (384, "outliers", 300), (768, "outliers", 2000), (1024, "outliers", 1),
    ],
)  # fmt: skip
def test_int8_is_within_one_of_onnxruntime(channels, kind, sigma):
    rng = np.random.default_rng(channels + sigma)
    scale, epsilon = np.float32(rng.uniform(2e-4, 2e-3)), 1e-12 if channels < 1000 else 1e-5
    stored = drawn(rng, channels, kind, sigma)
    gain, bias, out = case_of(rng, stored, scale, epsilon)
    rows = channel_rows((gain / out).tolist(), (bias / out).tolist(), bits=8)
    units = epsilon_units(epsilon, channels, float(scale))
    found = layer_norm(stored, rows, epsilon=units, bits=8)
    theirs = onnxruntime_of(stored, gain, bias, epsilon=epsilon, scale=scale, out=out)
    wrong = np.abs(found - theirs)
    assert wrong.max() <= 1
    assert np.count_nonzero(wrong) <= (SHORT_SHARE if channels == SHORT else SHARE) * wrong.size
    # int16: a 256th of the step.
    rows = channel_rows((gain / out * 256).tolist(), (bias / out * 256).tolist(), bits=16)
    wanted = np.rint(float64(stored, gain, bias, epsilon=epsilon, scale=scale) / out * 256)
    found = layer_norm(stored, rows, epsilon=units, bits=16)
    assert np.abs(found - np.clip(wanted, -32768, 32767)).max() <= 1


@pytest.mark.parametrize("channels", [384, 768, 1024])
def test_near_constant_rows_equal_float64(channels):
    """float32 loses the deviations of large values; the integers do not."""
    rng = np.random.default_rng(channels)
    stored = drawn(rng, channels, "near constant", 0)
    gain = rng.uniform(5, 25, channels)
    # Epsilon is one unit of the spread, exactly.
    scale = np.sqrt(float(np.float32(1e-6))) * channels
    rows = channel_rows(gain.tolist(), [0.0] * channels, bits=8)
    found = layer_norm(stored, rows, epsilon=epsilon_units(1e-6, channels, scale), bits=8)
    wanted = np.rint(float64(stored, gain, 0.0, epsilon=1e-6, scale=scale))
    wrong = np.abs(found - np.clip(wanted, -128, 127))
    assert wrong.max() <= 1
    assert np.count_nonzero(wrong) <= SHARE * wrong.size


def test_constant_rows_become_their_bias():
    stored = np.repeat(np.array([[-32768], [-1], [0], [32767]], np.int16), 640, axis=1)
    rows = channel_rows([4000.0] * 640, [-7.0] * 640, bits=16)
    assert (layer_norm(stored, rows, epsilon=1, bits=16) == -7).all()


@pytest.mark.parametrize("channels", [4, 7, 48, 62, 96, 312, 384, 576, 640, 768, 1008, 1024])
def test_normalized_values_fit(channels):
    """Rows of the greatest spread, of the greatest value, and of the least spread."""
    rows = np.full((6, channels), -32768, np.int16)
    rows[0, : channels // 2] = 32767
    rows[1, 0] = 32767
    rows[2, 0] = -32767
    rows[3] = 0
    rows[3, :2] = -1, 1
    rows[4] = np.linspace(-32768, 32767, channels)
    rows[5] = np.arange(channels) % 3
    sums, squares = statistics(rows)
    found = normalized(rows, sums, squares, channels=channels, epsilon=1)
    assert np.abs(found).max() < 1 << Z_BITS - 2
    wanted = float64(rows, 1, 0, epsilon=1.0 / channels**2, scale=1.0)
    assert np.abs(found / 2**20 - wanted).max() < 2e-6 + 2e-5 * np.abs(wanted).max()


def test_roots():
    """The table has 20 bits, less one in the last place, on both sides of its rows' borders."""
    rng = np.random.default_rng(0)
    assert max(slope for _, slope in root_table()) < 1 << 13
    spreads = [int(2 ** rng.uniform(0, SPREAD_BITS)) for _ in range(3000)]
    spreads += [(512 + row << 30) + at for row in range(0, 1536, 37) for at in (-1, 0, 1)]
    for spread in spreads:
        for dropped in range(5):
            found, exponent = root(spread, dropped)
            wanted = 2.0 ** (20 - dropped + exponent) / np.sqrt(float(spread))
            assert 4**exponent <= spread < 4 ** (exponent + 1)
            assert abs(found - wanted) <= 0.5 + 0.36 / 2**dropped + (found == 2**20 - 1)
    assert 63 * root(1, 4)[0] * 16 < 1 << SLOPE_BITS - 1


def test_channels_are_refused_by_name():
    with pytest.raises(InputError, match="channels of a LayerNorm"):
        split_channels(67)
    with pytest.raises(InputError, match="channels of a LayerNorm"):
        split_channels(1028)
    with pytest.raises(InputError, match="gain of a LayerNorm"):
        channel_rows([2.0**18], [0.0], bits=16)
