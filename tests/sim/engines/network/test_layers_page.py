"""The page of layers: charts drawn from the model's own figures."""

from dataclasses import replace

from hw.board import load_board
from hw.network.compile.compile import compile_network
from hw.network.config import NetworkConfig
from hw.network.graph.transformer.network import network_of
from hw.network.model.layers import Layer
from hw.network.model.timeline import Bound
from hw.network.predict import predict
from sim.engines.network.layers_page import layer_cycles, layer_roofline, render_layers, work_of
from sim.engines.network.programs import program_for
from tests.hw.network.program.example import CONFIG, example
from tests.support.networks.sentences import small


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


def test_a_transformer_has_its_attention_unit_and_tokens_a_second(tmp_path):
    config, board = NetworkConfig(attention_rows=16), load_board("u55c")
    made = compile_network(
        network_of(small("norm", "gelu"), [9, 12]),
        scratchpad_bytes=config.scratchpad_bytes,
        columns=config.columns,
    )
    program = program_for(made, config)
    assert work_of(program) == ("tokens", 21)
    assert work_of(example()) == ("images", 1)
    path = tmp_path / "layers.html"
    render_layers(program, config, board, path)
    text = path.read_text()
    rate = int(21 * 1e6 * board.clock_mhz / predict(program, config, board).cycles_total)
    assert f"{rate:,}" in text[text.index("Tokens a second") :][:200]
    assert "Images a second" not in text
    rows = [row for row in text.split("<tr>") if "<td" in row and ">attention unit<" in row]
    assert len(rows) == 2  # a layer's attention each
