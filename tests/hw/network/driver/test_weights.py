"""The memory of weight ports: words in the order in which the weight stream joins them to beats."""

import numpy as np
import pytest

from hw.errors import InputError
from hw.network.compile.compile import compile_network
from hw.network.config import NetworkConfig
from hw.network.driver.weights import weight_buffers
from hw.network.graph.onnx_reader import read_network
from hw.network.program.image import first_words
from hw.network.program.lower import program_of
from tests.support.networks.builder import Builder
from tests.support.networks.quantized import quantized


def program_on(columns, *, convolutions=2):
    net = Builder("weights")
    x = net.input("image", 1, 24, 6, 5)
    for number in range(convolutions):
        x = net.conv(x, 40 + 30 * number, name=f"conv{number}", kernel=3)
    net.output(net.add("Sigmoid", x, name="last"))
    network = read_network(quantized(net.model()))
    return program_of(compile_network(network, scratchpad_bytes=1 << 17, columns=columns))


@pytest.mark.parametrize(
    ("columns", "ports", "port_bytes", "lines"),
    [(64, 8, 32, 1), (32, 4, 16, 2), (64, 4, 16, 4), (16, 2, 32, 1)],
)
def test_beats_are_lines_of_a_word_of_each_port(columns, ports, port_bytes, lines):
    program = program_on(columns)
    config = NetworkConfig(columns=columns, weight_ports=ports, port_bytes=port_bytes)
    assert config.matrix.lines == lines
    buffers = weight_buffers(program, config)
    assert len(buffers) == ports
    firsts = first_words(program, config)
    assert len(firsts) == len(program.passes) == 2
    for first, beats in zip(firsts, program.passes, strict=True):
        for number, beat in enumerate(beats):
            words = range(first + number * lines, first + (number + 1) * lines)
            joined = [buffers[p][w * port_bytes : (w + 1) * port_bytes] for w in words for p in range(ports)]
            assert (np.concatenate(joined) == beat).all()
    assert sum(buffer.size for buffer in buffers) == sum(beats.size for beats in program.passes)


def test_a_program_without_weights_has_a_word_a_port():
    config = NetworkConfig()
    assert [buffer.size for buffer in weight_buffers(program_on(64, convolutions=0), config)] == [32] * 8


def test_packets_for_another_array_are_refused():
    with pytest.raises(InputError, match="columns of the program must be 64, as of the kernel, not 32"):
        weight_buffers(program_on(32), NetworkConfig())
