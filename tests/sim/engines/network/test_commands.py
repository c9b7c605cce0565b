"""``loomwork compile``: a model in, a build folder and its costs out; one line for what a user can mend."""

import json
import re
from html import escape
from pathlib import Path

import pytest

from hw.network.graph.network import Convolution
from sim.engines.network import compiling
from sim.engines.network.build_folder import read_build
from tests.support.command_line import call, refused
from tests.support.networks.builder import Builder
from tests.support.networks.pairs import Scales, operator_model
from tests.support.networks.quantized import drawn, quantized

#: A kernel that is small enough for a plan with bands.
SMALL = "scratchpad_bytes: 16384\nbanks: 4\nmemory: block\n"


def builder():
    net = Builder("net")
    x = net.conv(net.input("image", 1, 16, 40, 12), 72, name="wide", kernel=3)
    x = net.add("MaxPool", x, name="pool", kernel_shape=[2, 2], strides=[2, 2])
    x = net.add("Flatten", net.add("GlobalAveragePool", x, name="mean"), name="flat")
    net.output(net.dense(x, 70, name="classes"))
    return net


@pytest.fixture(autouse=True)
def model(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = Path("net.onnx")
    path.write_bytes(quantized(builder().model()))
    Path("small.yaml").write_text(SMALL)
    return path


def test_a_folder_and_a_report_of_the_costs(model):
    said = call("compile", model, "--report", "r.json", "--html", "layers.html").stdout
    assert said.endswith("r.json\nlayers.html\nbuild/net\n")
    build = read_build(Path("build/net"))
    assert (build.name, build.board.name) == ("net", "u55c")
    report = json.loads(Path("r.json").read_text())
    operators = report["operators"]
    assert [each["kind"] for each in operators] == ["conv", "max_pool", "average_pool", "conv"]
    assert (
        report["commands_total"]
        == len(build.program.steps)
        == sum(each["commands_total"] for each in operators)
    )
    convolutions = [each for each in build.network.operators if isinstance(each, Convolution)]
    assert (
        report["macs_total"] == 40 * 12 * 144 * 72 + 72 * 70 == sum(each["macs_total"] for each in operators)
    )
    assert report["model_weight_bytes"] == sum(each.weights.nbytes for each in convolutions)
    inside = sum(each["cycles_total"] for each in operators)
    moved = sum(report[f"{kind}_bytes"] for kind in ("image", "weight_read", "offchip_read", "offchip_write"))
    parameters = report["model_weight_bytes"] + 8 * (72 + 70)  # biases and scales of the columns
    assert report["moved_bytes"] == moved
    assert report["plan_tensor_bytes"] == build.compiled.plan.totals.compulsory_bytes
    assert report["compulsory_bytes"] <= parameters + report["plan_tensor_bytes"]
    assert report["moved_of_compulsory"] == round(moved / report["compulsory_bytes"], 4) >= 1
    assert re.search(rf"^ *compulsory_bytes +{report['compulsory_bytes']:,} *$", said, re.MULTILINE)
    outside = report["load_cycles"] + report["drain_cycles"]
    assert 0 <= report["predicted_cycles"] - inside - outside < 20
    # 480 pixels are one block, and two column tiles are no reason to read weights twice.
    assert operators[0]["weight_read_bytes"] == build.program.passes[0].nbytes
    assert [each["bound_by"] for each in operators][1:3] == ["vector", "vector"]
    page = Path("layers.html").read_text(encoding="utf-8")
    assert f"{report['predicted_cycles']:,}" in page
    for each in operators:
        assert f">{each['cycles_total']:,}<" in page
        assert escape(each["name"]) in page
        assert each["name"] in said
        assert f"{each['cycles_total']:,}" in said
        assert (
            sum(each[key] for key in each if key.startswith("cycles_") and key != "cycles_total")
            == (each["cycles_total"])
        )


def test_sums_that_gates_cannot_make_equal_are_named(model):
    """One operand's steps are 40,000 times the other's."""
    given = Scales(scales=(1.0, 39909.7421875, 1.442865014076233), zeros=(108, 85, 21), unsigned=True)
    model.write_bytes(operator_model("QLinearAdd", given, [(1, 16, 4, 4)] * 2))
    said = call("compile", model, "--report", "r.json")
    assert json.loads(Path("r.json").read_text())["unequal_pairs"] == {"node": 21}
    assert "warning: operator 'node': 21 of 65,536 pairs" in said.stderr


def test_a_small_scratchpad_needs_commands_of_bands(model):
    call("compile", model, "--config", "small.yaml", "-o", "out", "--report", "r.json")
    build = read_build(Path("out"))
    assert build.config.scratchpad_bytes == build.program.scratchpad_bytes == 16384
    report = json.loads(Path("r.json").read_text())
    assert report["commands_total"] > len(report["operators"])
    assert report["macs_total"] == sum(each["macs_total"] for each in report["operators"])
    call("compile", model, "-o", "out", "--scratchpad-bytes", 16384)
    build = read_build(Path("out"))
    assert (build.config.scratchpad_bytes, build.program.scratchpad_bytes) == (4 << 20, 16384)


def test_an_open_size_is_given_and_kept():
    import onnx

    model = onnx.load("net.onnx")
    model.graph.input[0].type.tensor_type.shape.dim[2].dim_param = "rows"
    del model.graph.value_info[:]
    onnx.save(model, "open.onnx")
    call("compile", "open.onnx", "--dim", "rows=40")
    assert read_build(Path("build/open")).network.values["image_QuantizeLinear_Output"].shape == (40, 12, 16)


def text(name, content):
    Path(name).write_text(content)
    return name


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("none.onnx",), "model must be a file that exists, not 'none.onnx'"),
        (("small.yaml",), "model must be an ONNX model, and this is none or is damaged, not 'small.yaml'"),
        (("net.onnx", "--board", "u56c"), "board must be one of"),
        (("net.onnx", "--report", "net.onnx"), "--report must be another file than model"),
        (("net.onnx", "--scratchpad-bytes", 100), "--scratchpad-bytes must be a multiple of 64, at most the"),
        (("net.onnx", "--scratchpad-bytes", 8 << 20), "--scratchpad-bytes must be a multiple of 64, at most"),
        (("net.onnx", "-o", "net.onnx"), "--output must be a directory, and net.onnx is a file"),
        (("net.onnx", "-o", "."), "build folder must be new, empty, or a build folder to replace"),
        (("net.onnx", "--dim", "rows"), "--dim must be NAME=VALUE"),
    ],
)
def test_what_a_user_can_mend_is_one_line(words, message):
    assert message in refused("compile", *words)
    assert not Path("build").exists()


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ("columns: 48", "small.yaml:1: columns must be a power of two from 16 to 64, not 48"),
        ("max_region_bytes: 64", "region_bytes of the program must be at most 64, the max_region_bytes of"),
    ],
)
def test_a_kernel_that_does_not_do_is_refused_before_anything_is_written(config, message):
    text("small.yaml", config)
    assert message in refused("compile", "net.onnx", "--config", "small.yaml")
    assert not Path("build").exists()


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ("max_steps: 2", "steps of the program at operator 'mean' must be at most 2, the max_steps of the"),
        ("vector_taps: 16", "vector_taps of the program at operator 'mean' must be at most 16, the vector_"),
    ],
)
def test_operators_beyond_a_kernel_are_named_before_a_plan_is_searched(config, message, monkeypatch):
    monkeypatch.setattr(compiling, "compile_network", None)
    text("small.yaml", config)
    assert message in refused("compile", "net.onnx", "--config", "small.yaml")


def test_a_kernel_that_is_too_large_for_the_board_is_refused():
    text("large.yaml", "columns: 64\nweight_ports: 4\nlanes: 64\n")
    message = refused("compile", "net.onnx", "--board", "ultra96v2", "--config", "large.yaml")
    assert "of network must be at most" in message
    assert "what ultra96v2 has for kernels" in message


def test_a_float_model_is_refused_with_all_of_its_operators():
    Path("float.onnx").write_bytes(drawn(builder().model()))
    assert "float.onnx: operators must be quantized and supported" in refused("compile", "float.onnx")


def test_a_scratchpad_that_no_plan_fits_is_answered_with_one_that_does():
    message = refused("compile", "net.onnx", "--scratchpad-bytes", 1024)
    assert message.startswith("scratchpad_bytes must be at least ")
    enough = int(message.split("at least ")[1].split()[0])
    assert "u55c" in message
    call("compile", "net.onnx", "--scratchpad-bytes", enough)
    assert "must be at least" in refused("compile", "net.onnx", "--scratchpad-bytes", enough // 2)
