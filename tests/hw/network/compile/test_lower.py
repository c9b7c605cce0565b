"""Commands of parts of an operator, one after the other."""

from hw.network.compile.lower import Band, Lowering
from hw.network.compile.steps import steps_of
from hw.network.graph.onnx_reader import read_network
from tests.support.networks.handmade import Handmade


def test_a_command_of_one_pixel_shares_the_packets_of_two_pixels_a_cycle():
    net = Handmade((1, 16, 9, 1))
    net.output(net.stored(net.add("Conv", net.image, net.weights(20, 16, 1, 1))))
    steps = steps_of(read_network(net.model()))
    lowering = Lowering(steps, columns=64)
    (step,) = steps.steps
    bands = [Band(first=0, last=1, address=0), Band(first=1, last=9, address=64)]
    lowering.add(step, {step.inputs[0]: bands}, Band(first=0, last=9, address=128))
    lowered = lowering.lowered()
    ((first, second),) = lowered.commands
    assert (first.halves, second.halves) == (False, True)
    assert first.weights == second.weights
    cells = lowered.passes[0].reshape(-1, 32, 8)
    assert (cells[:, :16] == cells[:, 16:]).all()
