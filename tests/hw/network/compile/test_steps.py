"""Networks that have no steps."""

import pytest

from hw.errors import InputError
from hw.network.compile.steps import steps_of
from hw.network.graph.onnx_reader import read_network
from tests.support.networks.handmade import Handmade


def test_an_output_that_is_an_input_is_refused():
    net = Handmade((1, 16, 6, 5))
    net.output(net.stored(net.add("Relu", net.image)))
    net.output(net.image)
    network = read_network(net.model())
    with pytest.raises(InputError, match=f"must be made by an operator, .* not '{net.image}'"):
        steps_of(network)
