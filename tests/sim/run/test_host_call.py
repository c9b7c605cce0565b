"""The places of tensors in buffers: found through writers and readers, whatever these do but compute."""

import numpy as np
import pytest

from loomwork_host.tensors import read_tensor
from sim.run.host_call import HostCall, described, host_tensor


def call(write=None, read=None):
    """Return a call of a tensor x, int16 [5, 3], and y, int8 [4], to z, int32 [6]."""
    return HostCall(
        inputs=(host_tensor("x", (5, 3), "int16"), host_tensor("y", (4,), "int8")) if write else (),
        outputs=(host_tensor("z", (6,), "int32", output=True),) if read else (),
        write=write or (lambda elements: {}),
        read=read or (lambda buffers: {}),
    )


def read_back(made, sizes):
    entries, arrays = described(made, sizes)
    return [read_tensor({**vars(entry), "reals": None}, arrays, f"{n}.") for n, entry in enumerate(entries)]


def test_inputs_are_found_among_padding_twice_and_in_two_buffers():
    rng = np.random.default_rng(0)

    def write(elements):
        x, y = elements
        padded = np.full((5, 4), 0x5A5A, np.int16)
        padded[:, :3] = x
        both = np.concatenate([y.view(np.uint8)[::-1], np.frombuffer(b"end", np.uint8), y.view(np.uint8)])
        return {"a": padded.T.copy().reshape(-1).view(np.uint8), "b": both}

    x, y = read_back(call(write), {})
    assert (x.unit_bytes, y.unit_bytes) == (2, 1)
    assert (list(x.places), list(y.places)) == (["a"], ["b"])
    given = rng.integers(-(2**15), 2**15, (5, 3), np.int16), rng.integers(-128, 128, 4, np.int8)
    buffers = {name: each.copy() for name, each in write([np.zeros_like(each) for each in given]).items()}
    for tensor, array in zip((x, y), given, strict=True):
        tensor.put(tensor.encode(array)[0], buffers)
    for name, expected in write(given).items():
        np.testing.assert_array_equal(buffers[name], expected)


@pytest.mark.parametrize("length", [3, 16, 24, 100])
def test_units_are_as_large_as_neighbours_stay_together(length):
    """Rows of a tensor dealt over two buffers."""
    made = HostCall(
        inputs=(host_tensor("x", (8, length), "int8"),),
        outputs=(),
        write=lambda elements: {
            f"m{n}": np.pad(elements[0][n::2], ((1, 0), (0, 0))).reshape(-1).view(np.uint8) for n in (0, 1)
        },
        read=lambda buffers: {},
    )
    (x,) = read_back(made, {})
    assert x.unit_bytes == {3: 1, 16: 16, 24: 8, 100: 4}[length]
    assert x.span("m0") == (length, 5 * length)


def test_outputs_are_found():
    def read(buffers):
        return {"z": np.concatenate([buffers["p"][4:12], buffers["q"][:16][::-1]]).view("<i4")}

    (z,) = read_back(call(read=read), {"p": 12, "q": 40})
    buffers = {
        name: np.random.default_rng(1).integers(0, 256, n, np.uint8) for name, n in (("p", 12), ("q", 40))
    }
    np.testing.assert_array_equal(z.decode(z.take(buffers)), read(buffers)["z"])


@pytest.mark.parametrize(
    "write",
    [
        lambda elements: {"a": elements[0].reshape(-1).view(np.uint8) ^ 1},
        lambda elements: {"a": np.append(elements[0], elements[0].sum()).view(np.uint8)},
        lambda elements: {"a": np.sort(elements[1]).view(np.uint8)},
    ],
)
def test_a_writer_that_computes_is_refused(write):
    with pytest.raises(ValueError, match="the writer computes with elements of inputs"):
        described(call(write), {})


def test_a_reader_that_computes_is_refused():
    with pytest.raises(ValueError, match="the reader computes with elements of outputs"):
        described(call(read=lambda buffers: {"z": buffers["p"].view("<i4") + 1}), {"p": 24})
    with pytest.raises(ValueError, match="output z has 12 bytes, not 24"):
        described(call(read=lambda buffers: {"z": buffers["p"][:12]}), {"p": 24})
