"""The page of layers: charts drawn from the model's own figures."""

from dataclasses import replace

from hw.board import load_board
from hw.network.config import NetworkConfig
from hw.network.model.layers import Layer
from hw.network.model.timeline import Bound
from hw.network.predict import predict
from sim.engines.network.layers_page import layer_cycles, layer_roofline
from tests.hw.network.program.example import CONFIG, example


def layer(name, **fields):
    given = {
        "steps": 1,
        "begin": 0,
        "cycles": 100,
        "spent": {Bound.ARRAY: 70, Bound.PIPELINE: 30},
        "macs": 4096 * 50,
        "weight_bytes": 4096,
        "transfer_bytes": 0,
    }
    return Layer(name=name, **(given | fields))


LAYERS = [
    layer("a"),
    layer("b", spent={Bound.WEIGHTS: 60, Bound.ARRAY: 40}, weight_bytes=1 << 16),
    layer("pool", spent={Bound.VECTOR: 90, Bound.PIPELINE: 10}, macs=0, weight_bytes=0),
    layer("a_long_name_of_a_convolution_in_stage_3/BiasAdd_quant", transfer_bytes=64),
]


def test_bars_add_up_to_the_cycles():
    figure = layer_cycles(LAYERS)
    assert [sum(bar.y[n] for bar in figure.data) for n in range(len(LAYERS))] == [100] * 4
    labels = figure.layout.xaxis.ticktext
    assert labels == ("a", "b", "pool", "a_long_name_of_a_c…_3/BiasAdd")
    assert "4,096" not in figure.data[0].customdata[2]
    assert "204,800 MACs, 2,048 a cycle" in figure.data[0].customdata[0]


def test_layers_that_multiply_lie_under_the_roof():
    program = replace(example(), parameter_bytes=1000)
    predicted = predict(program, CONFIG, load_board("u55c"))
    roof, *marks = layer_roofline(LAYERS, predicted).data
    assert [mark.name for mark in marks] == ["bound by array", "bound by weights"]
    assert [*marks[0].y, *marks[1].y] == [2048] * 3
    assert [*marks[1].x] == [50 * 4096 / 65536]
    slots, slope = predicted.mac_slots_per_cycle, predicted.memory_bytes_per_cycle
    assert (roof.x[1], roof.y[1], roof.y[2]) == (slots / slope, slots, slots)
    assert NetworkConfig().columns * 64 == 2 * slots
    assert not layer_roofline(LAYERS[2:3], predicted).data
