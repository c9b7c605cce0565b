"""``loomwork sim conv``: a layer in ONNX's names, or a table of layers; wrong values are refused."""

from pathlib import Path

import numpy as np
import pytest

from sim.engines.conv.cases import BLOCKS
from sim.run.tensors import load_tensors
from tests.support.command_line import call, refused

HEAD = "name,kind,H,Cin,Cout,K,s,g,OH"


@pytest.fixture(autouse=True)
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("c.yaml").write_text("lanes: 16\ninputs: 8\noutputs: 8\nports: 2\n")
    lines = [
        f"{r.name},{r.kind},{r.rows},{r.channels},{r.outputs},{r.kernel[0]},{r.stride[0]},{r.group},{r.out_rows}"
        for r in BLOCKS
    ]
    Path("layers.csv").write_text("\n".join([HEAD, *lines]))


def layer(**changes):
    """Write a small input file, with tensors changed, left out (None) or added."""
    rng = np.random.default_rng(0)
    tensors = {
        "x": rng.normal(size=(6, 5, 7)),
        "w": rng.normal(size=(4, 6, 3, 3)),
        "offset": rng.normal(size=(18, 5, 7)),
        "mask": rng.random((9, 5, 7)),
        "bias": rng.normal(size=4),
        "pads": np.array([1, 1, 1, 1]),
    } | changes
    np.savez("in.npz", **{name: value for name, value in tensors.items() if value is not None})


def sim(*words):
    return ("sim", "conv", "--config", "c.yaml", "--backend", "golden", "--output", "out.npz", *words)


def test_a_layer_gives_sums_results_and_reals():
    layer()
    call(*sim("--input", "in.npz"))
    found = load_tensors(Path("out.npz"))
    assert set(found) == {"acc", "acc_scale", "y", "y_float", "golden_acc_int", "golden_y_int"}
    assert found["acc_scale"] == 4**5 * 256
    assert (found["acc"].dtype, found["y"].dtype) == (np.int64, np.int8)
    assert found["acc"].shape == found["y"].shape == found["y_float"].shape == (4, 5, 7)
    # A result is its sum, scaled and rounded: reals of both differ by at most half a step.
    slope = np.polyfit(found["acc"][0].ravel(), found["y_float"][0].ravel(), 1)
    step = np.diff(np.unique(found["y_float"]))[0]
    assert np.abs(np.polyval(slope, found["acc"][0]) - found["y_float"][0]).max() < 0.75 * step


def test_a_network_gives_every_map_by_its_seed():
    call(*sim("--network", "layers.csv"))
    first = load_tensors(Path("out.npz"))
    ends = {name.rpartition("+")[2] for name in first if not name.startswith("golden_")}
    assert {"stem", "dc0.pw", "head.pw2"} <= ends
    np.savez("in.npz", seed=np.array(1))
    call(*sim("--network", "layers.csv", "--input", "in.npz"))
    other = load_tensors(Path("out.npz"))
    assert set(other) == set(first)
    assert any((other[name] != first[name]).any() for name in first)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"x": np.ones((5, 7))}, "shape of x must be [C, H, W]; of one dimension, [C, 1, W], and w's kernel"),
        ({"group": np.array(4)}, "group must be a divisor of 6 channels, not 4"),
        ({"offset_group": np.array(4)}, "offset_group must be a divisor of 6 channels, not 4"),
        ({"offset": np.full((18, 5, 7), np.nan)}, "tensor offset must be finite everywhere, not 'NaN or inf"),
        ({"w": np.ones((4, 6, 8, 3))}, "kernel must be from 1 to 7, not (8, 3)"),
        ({"dilations": np.array([9, 1])}, "kernel must be no larger than the padded map after dilation: 7"),
    ],
)
def test_wrong_layers_are_refused_in_one_line(changes, message):
    layer(**changes)
    assert refused(*sim("--input", "in.npz")).startswith(message)
    assert not Path("out.npz").exists()


def test_wrong_weights_of_four_bits_are_refused():
    Path("c.yaml").write_text("weight_bits: 4\n")
    layer(w=np.full((4, 6, 3, 3), -8, np.int8))
    assert refused(*sim("--input", "in.npz")) == "w must be from -7 to 7 with weights of 4 bits, not -8"


def test_wrong_networks_are_refused():
    layer()
    line = refused(*sim("--network", "layers.csv", "--input", "in.npz"))
    assert line == "tensor name must be seed: a network has no other tensors, not 'x'"
    assert refused(*sim("--network", "no.csv")) == "--network must be a file that exists, not 'no.csv'"
    line = refused("sim", "attention", "--network", "layers.csv")
    legal = "--network must be left out: the engine attention has no such option, not 'layers.csv'"
    assert line == legal
    assert refused(*sim("--network", "out.npz")).startswith("--output must be another file than --network")
    Path("layers.csv").write_text(f"{HEAD}\na,dw,4,4096,4096,3,1,1,4\n")
    line = refused(*sim("--network", "layers.csv"))
    assert line.startswith(
        "g (layers.csv, line 2, layer a) must be 4096, Cin: in other groups the kind is conv"
    )
    Path("layers.csv").write_text(f"{HEAD}\na,dw,4,4096,4096,3,1,4096,4\n")
    line = refused(*sim("--network", "layers.csv"))
    assert line.startswith("channels (line 2, layer a) must be at most 1024")
