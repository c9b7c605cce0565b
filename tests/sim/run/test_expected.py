"""The bytes of output buffers: located through a reader of buffers, whatever their sizes."""

import numpy as np
import pytest

from hw.launch import Buffer, Launch
from sim.run.expected import expected_bytes


def launch(**sizes):
    """Return a launch whose buffers are all outputs but ``given``."""
    return Launch(
        scalars={},
        buffers=tuple(
            Buffer(argument=name, data=None, size_bytes=size, output=name != "given")
            for name, size in sizes.items()
        ),
    )


@pytest.mark.parametrize("size", [8, 256, 300, 66_000])
def test_each_byte_is_found_and_no_other(size):
    """A tensor dealt over two buffers in reverse, another within padding."""
    rng = np.random.default_rng(size)

    def read(buffers):
        assert set(buffers) == {"a", "b"}
        dealt = np.concatenate([buffers["b"][::-2], buffers["a"][: size // 2]])
        return {"x": dealt.view("<u2"), "y": buffers["a"][-3:-1].reshape(2, 1)}

    before = {name: rng.integers(0, 256, size + 4, np.uint8) for name in "ab"}
    found = expected_bytes(launch(given=7, a=size + 4, b=size + 4), read, read(before))
    masks = {name: np.zeros(size + 4, np.uint8) for name in "ab"}
    masks["a"][: size // 2] = masks["a"][-3:-1] = masks["b"][1::2] = 255
    for name, expected in found.items():
        np.testing.assert_array_equal(expected.mask, masks[name])
        np.testing.assert_array_equal(expected.content, before[name] & masks[name])
        assert expected.known_bytes == np.count_nonzero(masks[name])


def test_a_buffer_without_a_known_byte_is_left_out():
    golden = {"x": np.arange(4, dtype=np.uint8)}
    assert set(expected_bytes(launch(a=4, log=8), lambda buffers: {"x": buffers["a"]}, golden)) == {"a"}


def test_a_reader_that_computes_is_refused():
    golden = {"x": np.arange(4, dtype=np.uint8)}
    with pytest.raises(ValueError, match="the reader computes"):
        expected_bytes(launch(a=4), lambda buffers: {"x": buffers["a"] ^ 1 & buffers["a"]}, golden)


def test_tensors_that_contradict_each_other_are_refused():
    golden = {"x": np.zeros(4, np.uint8), "y": np.ones(4, np.uint8)}
    with pytest.raises(ValueError, match="contradict each other"):
        expected_bytes(launch(a=4), lambda buffers: dict.fromkeys("xy", buffers["a"]), golden)
