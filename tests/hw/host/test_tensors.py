"""Numbers of tensors: quantized as the drivers do, and back; elements of any size; real tensors refused."""

import numpy as np
import pytest

from hw.conv.driver.formats import quantized_map, quantized_mask, quantized_offsets
from hw.network.graph.network import Value
from hw.network.graph.refs import quantize
from loomwork_host import InputError
from loomwork_host.tensors import read_tensor

RNG = np.random.default_rng(0)


def tensor(shape, integers="int8", *, output=False, reals=None, arrays=None, **changes):
    """Return a tensor that lies in one buffer as it is."""
    size = changes.get("element_bytes") or (2 if integers == "bfloat16" else np.dtype(integers).itemsize)
    limits = np.iinfo("uint16" if integers == "bfloat16" else integers)
    entry = {
        "name": "x",
        "output": output,
        "shape": shape,
        "integers": integers,
        "element_bytes": size,
        "offset": 0,
        "lowest": int(limits.min),
        "highest": int(limits.max),
        "reals": None
        if reals is None
        else {"half_up": False, "lowest": -128, "highest": 127, "legal": None, **reals},
        "lengths": [],
        "unit_bytes": size,
        **changes,
    }
    places = np.arange(np.prod(shape))
    own = {"0.tensor.memory": places, "0.buffer.memory": places}
    given = {f"0.{name}": np.asarray(array, np.float64) for name, array in (arrays or {}).items()}
    return read_tensor(entry, own | given, "0.")


def encoded(target, given):
    """Return the elements, as they are in memory."""
    raw, clamped = target.encode(given)
    buffers = {"memory": np.zeros(raw.size, np.uint8)}
    target.put(raw, buffers)
    return buffers["memory"].view(f"<i{target.element_bytes}").reshape(target.shape), clamped


REALS = RNG.normal(0, 40, (3, 5)).astype(np.float32)


@pytest.mark.parametrize("zero", [0, -7, 100])
@pytest.mark.parametrize("scale", [1.0, 0.37, 0.5])
def test_reals_as_a_network_quantizes_them(scale, zero):
    scale = float(np.float32(scale))
    value = Value(name="x", shape=(1, 3, 5), scale=scale, zero=zero)
    halves = np.arange(-300, 300, dtype=np.float32)[:, None] * np.float32(scale / 2)
    for given in (REALS, halves, REALS.astype(np.float64)):
        target = tensor(given.shape, reals={"type": "float32"}, arrays={"scale": scale, "zero": zero})
        found, clamped = encoded(target, given)
        np.testing.assert_array_equal(found, quantize(given, value))
        beyond = np.rint(given.astype(np.float32) / np.float32(scale)) + zero
        assert clamped == np.count_nonzero((beyond < -128) | (beyond > 127))


@pytest.mark.parametrize("kind", [np.float16, np.float32, np.float64])
def test_reals_as_a_layer_quantizes_them(kind):
    given = REALS.astype(kind)
    elements, scale, zero = quantized_map(given)
    target = tensor(given.shape, reals={"type": "own"}, arrays={"scale": scale, "zero": zero})
    np.testing.assert_array_equal(encoded(target, given)[0], elements)


def test_offsets_and_masks_as_a_layer_quantizes_them():
    halves = np.arange(-40, 40, dtype=np.float64) / 64 * 3
    reals = {"type": "float64", "half_up": True, "lowest": -48, "highest": 48}
    target = tensor(halves.shape, "int16", reals=reals, arrays={"scale": 1 / 32})
    expected = quantized_offsets(halves, 5, bound=1)
    reals["lowest"], reals["highest"] = -32, 32
    target = tensor(halves.shape, "int16", reals=reals, arrays={"scale": 1 / 32})
    np.testing.assert_array_equal(encoded(target, halves)[0], expected)
    mask = np.arange(1025) / 1024
    reals = {"type": "float64", "half_up": True, "lowest": 0, "highest": 255, "legal": (0.0, 1.0)}
    target = tensor(mask.shape, "uint8", reals=reals, arrays={"scale": 1 / 256})
    np.testing.assert_array_equal(encoded(target, mask)[0].view(np.uint8), quantized_mask(mask))
    with pytest.raises(InputError, match=r"^x must be from 0.0 to 1.0, not 1.25$"):
        target.encode(mask * 1.25)


def test_real_numbers_that_are_none():
    target = tensor((2,), reals={"type": "float32"}, arrays={"scale": 1.0})
    for number in (np.nan, np.inf):
        with pytest.raises(InputError, match=r"^x must be finite everywhere, not 'NaN or infinity'$"):
            target.encode(np.array([1.0, number]))


def test_unsigned_numbers_lie_as_signed_ones():
    given = np.arange(256, dtype=np.uint8).reshape(16, 16)
    changes = {"offset": -128, "element_bytes": 1}
    found, _ = encoded(tensor((16, 16), "uint8", **changes), given)
    np.testing.assert_array_equal(found, given.astype(int) - 128)
    target = tensor((16, 16), "uint8", output=True, **changes)
    back = target.decode(found.reshape(-1).view(np.uint8))
    np.testing.assert_array_equal(back, given)
    assert back.dtype == np.uint8


@pytest.mark.parametrize("size", range(1, 9))
def test_elements_of_any_size(size):
    low, high = -(1 << 8 * size - 1), (1 << 8 * size - 1) - 1
    numbers = [low, low + 1, -1, 0, 1, 77, high]
    raw = b"".join(number.to_bytes(size, "little", signed=True) for number in numbers)
    target = tensor((7,), "int64", output=True, element_bytes=size, lowest=low, highest=high)
    assert target.decode(np.frombuffer(raw, np.uint8)).tolist() == numbers


def test_numbers_of_bfloat16():
    patterns = np.array([0x3F80, 0xC000, 0x4049, 0], np.uint16)
    target = tensor((4,), "bfloat16", output=True, reals={"type": "float32"}, arrays={"scale": 2.0})
    raw = patterns.view(np.uint8)
    np.testing.assert_array_equal(target.decode(raw), np.array([2.0, -4.0, 6.28125, 0.0], np.float32))
    np.testing.assert_array_equal(target.decode(raw, integers=True), patterns)


def test_results_are_the_caller_s_own():
    raw = np.zeros(4, np.uint8)
    found = tensor((4,), output=True).decode(raw)
    found[:] = 1
    assert not raw.any()
