"""Shapes of the matrix unit that there are none of."""

import pytest

from hw.errors import InputError
from hw.network.matrix.config import MatrixConfig


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"inputs": 48}, "inputs must be a power of two from 16 to 128, not 48"),
        ({"columns": 2}, "columns must be a power of two from 4 to 128, not 2"),
        ({"block_pixels": 2048}, "block_pixels must be a power of two from 32 to 1024, not 2048"),
        ({"ports": 3}, "ports must be 2 or 4 or 8 of 256 bits, not 3"),
        ({"ports": 16}, "ports must be 2 or 4 or 8 of 256 bits, not 16"),
        ({"port_bits": 96}, "port_bits must be a power of two from 64 to 512, not 96"),
        ({"tables": 3}, "tables must be a power of two from 2 to 256, not 3"),
        ({"inputs": "64"}, "inputs must be a whole number, not '64'"),
    ],
)
def test_other_shapes_are_refused(fields, message):
    with pytest.raises(InputError, match=f"^{message}$"):
        MatrixConfig(**fields)


@pytest.mark.parametrize(("ports", "lines"), [(8, 1), (4, 2), (2, 4)])
def test_words_of_a_port_in_a_word_of_a_packet(ports, lines):
    assert MatrixConfig(ports=ports).lines == lines


def test_the_default_is_the_accelerator_s():
    config = MatrixConfig()
    assert (config.cells, config.weight_beats, config.packet_bits // config.ports) == (32, 16, 256)
