"""The golden model of transformers beside onnxruntime and float64."""

import math

import numpy as np
import onnx
import onnxruntime
import pytest

from hw.errors import InputError
from hw.network.graph.network import Attention, LayerNorm, Sum, TokenMean, Value
from hw.network.graph.sums import wide_sum_rule
from hw.network.graph.transformer.network import network_of, read_tokens
from hw.network.graph.transformer.writer import written
from sim.golden.attention.exact import attention_float64
from sim.golden.network import execute, result
from tests.support.networks.sentences import sentences, small

#: Share of elements that may differ, by 1, from onnxruntime on a graph of floats, by kind and bits.
_DIFFER = {
    ("layer_norm", 8): 1e-4,
    ("layer_norm", 16): 0.02,
    ("conv", 8): 1e-3,
    ("conv", 16): 1e-3,
    ("add", 16): 1e-3,
    ("attention", 8): 0.01,
}


def runtime(model, network, ids):
    """Return onnxruntime's stored elements of each operator's result."""
    proto = onnx.load_model_from_string(model)
    names = [each.output for each in network.operators]
    for name in names:
        proto.graph.output.append(onnx.helper.make_empty_tensor_value_info(f"{name}:quantized"))
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(proto.SerializeToString(), options)
    found = session.run([f"{name}:quantized" for name in names], {"input_ids": ids[np.newaxis]})
    return {name: array.reshape(network.values[name].shape) for name, array in zip(names, found, strict=True)}


@pytest.mark.parametrize("forms", [("mask", "heads"), ("before", "causal", "gelu")])
def test_operators_equal_onnxruntime_up_to_ties(forms):
    model = written(small(*forms))
    differ, count = {}, {}
    for ids in sentences(4, seed=3, least=10):
        network = read_tokens(model, (len(ids),))
        known = {**network.constants, "input_ids": ids.astype(np.int32).reshape(1, -1, 1)}
        known |= runtime(model, network, ids)
        for each in network.operators:
            mine = result(each, [known[name] for name in each.inputs], network.values)
            assert mine.dtype == known[each.output].dtype
            apart = np.abs(mine.astype(int) - known[each.output])
            assert apart.max() <= 1
            kind = each.kind, network.values[each.output].bits
            differ[kind] = differ.get(kind, 0) + int((apart > 0).sum())
            count[kind] = count.get(kind, 0) + apart.size
    assert all(number <= _DIFFER.get(kind, 0) * count[kind] for kind, number in differ.items())


def test_packed_sentences_are_the_sentences_alone():
    blocks = small("before", "causal", "gelu")
    texts = sentences(5, seed=4, least=1)
    network = network_of(blocks, [len(ids) for ids in texts])
    packed = execute(network, {"input_ids": np.concatenate(texts).astype(np.int32).reshape(1, -1, 1)})
    (output,) = network.outputs
    for number, ids in enumerate(texts):
        alone = execute(network_of(blocks, [len(ids)]), {"input_ids": ids.astype(np.int32).reshape(1, -1, 1)})
        assert (packed[output][0, number] == alone[output][0, 0]).all()


def _wide(name, scale, *, shape=(1, 40, 96), bits=16):
    return Value(name=name, shape=shape, scale=float(np.float32(scale)), zero=0, bits=bits)


def test_sums_of_int16_are_those_of_real_numbers():
    rng = np.random.default_rng(0)
    values = {"a": _wide("a", 3e-4), "b": _wide("b", 1.1e-4), "y": _wide("y", 3.8e-4)}
    read = [rng.integers(-32768, 32768, (1, 40, 96)).astype(np.int16) for _ in "ab"]
    low, high = values["y"].bounds
    found = result(Sum(name="y", inputs=("a", "b"), output="y", low=low, high=high), read, values)
    exact = (read[0] * np.float64(values["a"].scale) + read[1] * values["b"].scale) / values["y"].scale
    # Factors have 24 fraction bits.
    assert np.abs(found - np.clip(exact, low, high)).max() < 0.5 + 2 * 32768 * 2.0**-25
    assert (np.abs(exact) > high).any()


def test_means_of_int16_are_those_of_real_numbers():
    rng = np.random.default_rng(3)
    segments = (1, 7, 32)
    values = {"x": _wide("x", 3e-4), "y": _wide("y", 5e-5, shape=(1, 3, 96))}
    stored = rng.integers(-32768, 32768, (1, 40, 96)).astype(np.int16)
    stored[:, 20:] //= 2
    low, high = values["y"].bounds
    operator = TokenMean(name="y", inputs=("x",), output="y", segments=segments, low=low, high=high)
    found, first = result(operator, [stored], values), 0
    for number, tokens in enumerate(segments):
        exact = stored[0, first : first + tokens].mean(axis=0) * (values["x"].scale / values["y"].scale)
        assert np.abs(found[0, number] - np.clip(exact, low, high)).max() < 0.501
        first += tokens


def test_a_sum_that_is_much_finer_than_its_operands_is_refused():
    values = [_wide("a", 3e-4), _wide("b", 3e-4), _wide("y", 4e-6)]
    with pytest.raises(InputError, match=r"scale of value .y. must be less than 2\^6 times as fine"):
        wide_sum_rule(*values)


@pytest.mark.parametrize(("bits", "scale", "error"), [(8, 0.02, 0.5005), (16, 1e-4, 0.6)])
def test_layer_norm_is_that_of_real_numbers(bits, scale, error):
    rng = np.random.default_rng(1)
    values = {"x": _wide("x", 2e-4), "y": _wide("y", scale, bits=bits)}
    stored = (rng.normal(size=(1, 40, 96)) * rng.uniform(1, 9000, (1, 40, 1))).astype(np.int16)
    gain, bias = (rng.normal(size=96).astype(np.float32) for _ in "gb")
    low, high = values["y"].bounds
    operator = LayerNorm(
        name="y", inputs=("x",), output="y", gain=gain, bias=bias, epsilon=1e-5, low=low, high=high
    )
    found = result(operator, [stored], values)
    real = stored * np.float64(values["x"].scale)
    centered = real - real.mean(axis=2, keepdims=True)
    spread = np.sqrt((centered**2).mean(axis=2, keepdims=True) + 1e-5)
    exact = (centered / spread * gain + bias) / values["y"].scale
    assert np.abs(found - np.clip(exact, low, high)).max() < error


def test_attention_is_that_of_each_segment():
    rng = np.random.default_rng(2)
    segments = (3, 33, 4)
    values = {name: _wide(name, 0.05, bits=8) for name in "qkv"} | {"y": _wide("y", 0.03, bits=8)}
    read = [rng.integers(-127, 128, (1, 40, 96)).astype(np.int8) for _ in "qkv"]
    operator = Attention(
        name="y", inputs=tuple("qkv"), output="y", heads=3, softmax_scale=1 / math.sqrt(32), segments=segments
    )
    found, first = result(operator, read, values), 0
    for tokens in segments:
        heads = [
            each[0, first : first + tokens].reshape(tokens, 3, 32).transpose(1, 0, 2) * 0.05 for each in read
        ]
        exact = (
            attention_float64(*heads, softmax_scale=1 / math.sqrt(32)).transpose(1, 0, 2).reshape(tokens, 96)
        )
        own = found[0, first : first + tokens]
        assert np.abs(own - np.clip(exact / 0.03, -128, 127)).max() < 0.75
        first += tokens
