"""Layers of other tools' files in a sweep: workloads, what is left out, boards, tables to compare."""

import csv
import io
import sqlite3
from pathlib import Path

import numpy as np
import pytest
from pydantic import TypeAdapter

from hw.board import load_board
from hw.conv.driver.workload import ConvWorkload
from hw.edge import Document, validate
from hw.errors import InputError
from hw.registry import find_engine
from sim.engines.conv.cases import SMALL
from sim.run.run import find_adapter, run
from sim.sweep import charts
from sim.sweep.figures import first_of_equals
from sim.sweep.input.spec_file import layers_spec, read_spec
from sim.sweep.results import load_sweep
from sim.workloads.layers import Attention, Convolution, Layer, Other, Product
from tests.support.command_line import call, refused
from tests.support.sweep.specs import plain, write

CONV = """\
Layer name, IFMAP Height, IFMAP Width, Filter Height, Filter Width, Channels, Num Filter, Strides,
stem,32,32,3,3,3,24,2,
for,16,16,1,1,24,48,1,
wide,16,16,9,9,8,8,1,
stem,16,16,1,1,48,24,1,
"""
GEMM = "Layer,M,N,K,\nQK,40,64,32,\nAV,40,32,64,\nfc,1,10,64,\n"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "net.csv").write_text(CONV)
    (tmp_path / "gemm.csv").write_text(GEMM)
    return tmp_path


def layer(work, name="a", count=1):
    return Layer(name=name, where="a.csv:2", work=work, count=count)


def conv(**changes):
    return Convolution(**{"channels": 8, "rows": 9, "columns": 9, "outputs": 8, "kernel": (3, 3), **changes})


def test_layers_are_workloads_and_the_others_are_listed(folder):
    spec = layers_spec("conv", Path("net.csv"), boards=["u55c"])
    (read,) = spec.read.values()
    # Names of expressions, each once; `for` is a word of theirs.
    assert list(spec.workloads) == ["stem", "layer_for", "stem_2"]
    assert [asked.title for asked in spec.workloads.values()] == ["stem", "for", "stem"]
    assert dict(read.numbers) == {"stem": 0, "layer_for": 1, "stem_2": 3}
    (left,) = read.left_out
    assert (left.name, left.where, left.macs) == ("wide", "net.csv:4", 64 * 81 * 64)
    assert left.reason == "kernel must be from 1 to 7, not (9, 9)"
    assert read.source == "SCALE-Sim topology of convolutions, net.csv"


def test_layers_are_read_without_a_prediction_and_too_long_ones_are_listed(folder, monkeypatch):
    lines = "E,512,512,1,1,3,4096,1,\nFF,512,512,1,1,4096,16384,1,\n"
    Path("llama.csv").write_text(CONV.splitlines()[0] + "\n" + lines)
    with monkeypatch.context() as patch:
        patch.delattr("hw.conv.model.predict.predict_launch")
        spec = layers_spec("conv", Path("llama.csv"), boards=["u55c"])
    (read,) = spec.read.values()
    assert list(spec.workloads) == ["E"]
    (left,) = read.left_out
    assert left.name == "FF"
    assert left.reason.startswith("sweeps of weight tiles over blocks of pixels must be at most 4,194,304; ")


def test_attention_stands_for_its_products(folder):
    (read,) = layers_spec("attention", Path("gemm.csv"), boards=["u55c"]).read.values()
    assert dict(read.numbers) == {"QK_AV": 0}
    assert [(each.name, each.macs) for each in read.left_out] == [("fc", 640)]
    # The convolution engine has no softmax: it does the products one by one.
    spec = layers_spec("conv", Path("gemm.csv"), boards=["u55c"])
    assert list(spec.workloads) == ["QK", "AV", "fc"]


def test_a_sweep_over_boards(folder):
    words = ("sweep", "conv", "--workload", "net.csv", "--board", "u55c", "--board", "zcu104")
    first = call(*words, "--vary", "inputs=16,32", "--vary", "outputs=[16]", "--workers", 1).stdout
    assert first.startswith("SCALE-Sim topology of convolutions, net.csv: 3 layers for conv, 1 left out, ")
    assert "kernel must be from 1 to 7" in first
    assert "microseconds" in first
    results = load_sweep(folder / "conv-net.db")
    assert len(results.points) == 4
    for point in results.points:
        clock = load_board(point.point.board).clock_mhz
        figures = point.figures
        assert figures["microseconds"] == pytest.approx(figures["cycles"] / clock)
    assert {point.point.board for point in results.front} == {"u55c", "zcu104"}
    figure = charts.pareto(results, "dsp")
    shown = {trace.name: trace for trace in figure.data if trace.visible}
    for board in ("u55c", "zcu104"):
        trace = shown[board]
        assert trace.meta == board
        assert list(trace.y) == [
            point.figures["microseconds"] for point in results.points if point.point.board == board
        ]
    assert shown["u55c"].marker.color != shown["zcu104"].marker.color
    assert charts.parallel(results).data[0].dimensions[0].label == "board"
    heat = charts.heat(results, "microseconds")
    assert heat.layout.xaxis.title.text == "board"
    assert {trace.meta for trace in charts.roofline(results).data if trace.mode == "markers"} == {
        "u55c",
        "zcu104",
    }
    call("report", "conv-net.db")
    page = (folder / "conv-net.html").read_text()
    assert "<option>zcu104</option>" in page
    assert "wide (net.csv:4), 331,776 MACs: kernel must be from 1 to 7" in page


def test_tables_of_scale_sim(folder):
    call("sweep", "conv", "--workload", "net.csv", "--vary", "inputs=32", "--workers", 1)
    call("report", "conv-net.db", "--scale-sim", "tables")
    results = load_sweep(folder / "conv-net.db")
    (point,) = results.front
    lines = (folder / "tables" / "COMPUTE_REPORT.csv").read_text().splitlines()
    assert lines[0] == (
        "LayerID, Total Cycles (incl. prefetch), Total Cycles, Stall Cycles, Overall Util %, "
        "Mapping Efficiency %, Compute Util %,"
    )
    table = list(csv.DictReader(io.StringIO("\n".join(lines)), skipinitialspace=True))
    assert [row["LayerID"] for row in table] == ["0", "1", "3"]
    for row, name in zip(table, ("stem", "layer_for", "stem_2"), strict=True):
        figures, outcome = point.figures, point.outcome("prediction", workload=name)
        assert int(row["Total Cycles"]) == figures[f"{name}.cycles"]
        assert float(row["Overall Util %"]) == pytest.approx(100 * figures[f"{name}.utilization"])
        cycles = outcome.document["cycles"]
        stalled = sum(count for cause, count in cycles.items() if "stall" in cause)
        assert int(row["Stall Cycles"]) == stalled
        assert float(row["Overall Util %"]) < float(row["Compute Util %"]) < 100
    times = (folder / "tables" / "TIME_REPORT.csv").read_text().splitlines()
    assert times[0] == "LayerID, Time (us),"
    assert float(times[1].split(", ")[1].rstrip(",")) == point.figures["stem.microseconds"]
    assert "--point must be one of 0, not 7" in refused(
        "report", "conv-net.db", "--scale-sim", "t", "--point", 7
    )
    assert "left out without --scale-sim" in refused("report", "conv-net.db", "--point", 0)


def test_a_sweeps_file_with_layers(folder):
    document = plain(objectives={"cycles": "min", "QK_AV.cycles": "min"})
    engine = document["engines"]["attention"]
    del engine["workloads"]
    engine["layers"] = "gemm.csv"
    spec = read_spec(write(folder / "a.yaml", document))
    assert list(spec.workloads) == ["QK_AV"]
    (folder / "below").mkdir()
    document = plain()
    path = write(folder / "below" / "b.yaml", document)
    spec = read_spec(path, boards=["u55c"], layers=Path("gemm.csv"))
    assert (spec.boards, list(spec.workloads)) == (("u55c",), ["QK_AV"])


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("conv",), "--workload must be given with the engine conv; or name a sweep's .yaml file"),
        (
            ("conf", "--workload", "net.csv"),
            "SPEC must be a .yaml file, or one of the engines attention, conv",
        ),
        (("conv", "--workload", "none.csv"), "--workload must be a file that exists"),
        (
            ("oram", "--workload", "net.csv"),
            "layers of oram must be left out: oram takes no layers; name its files",
        ),
        (("conv", "--workload", "net.csv", "--board", "u56c"), "boards.0 must be one of"),
        (
            ("conv", "--workload", "net.csv", "--vary", "input=8"),
            "engines.conv.parameters.input must be one of",
        ),
        (
            ("conv", "--workload", "net.csv", "--vary", "inputs"),
            "--vary must be FIELD=VALUES, as in rows=8,16",
        ),
        (("conv", "--workload", "net.csv", "--vary", "inputs=[8"), "--vary must be FIELD=VALUES"),
        (("conv", "--workload", "net.csv", "--dim", "N=1"), "--dim must be left out: only templates"),
        (("conv", "--workload", "net.csv", "--dim", "N"), "--dim must be NAME=VALUE"),
        (("a.yaml", "--vary", "rows=8"), "--vary must be left out: a.yaml says it"),
        (("a.yaml", "--dim", "N=1"), "--dim must be left out: no file of layers is read"),
        (("a.yaml", "--workload", "a.yaml"), "--workload must be another file than SPEC"),
        (("b.yaml",), "read must be left out: layers names the file to read"),
    ],
)
def test_what_is_wrong_is_one_line(folder, words, says):
    write(folder / "a.yaml", plain())
    write(folder / "b.yaml", plain(read={"attention": {"source": "a", "macs": 1}}))
    assert says in refused("sweep", *words)


def test_equal_designs_stand_once_on_a_front(folder):
    document = plain(objectives={"cycles": "min"})
    engine = document["engines"]["attention"]
    engine["parameters"] = {"rows": [1, 2]}
    engine["config"] |= {"lanes": 32, "merge_lanes": 2, "tile_keys": 16}
    words = ("sweep", write(folder / "a.yaml", document), "-o", "a.db", "--workers", 1)
    assert "equal" not in call(*words).stdout
    assert [point.equal_to for point in load_sweep(folder / "a.db").points] == [None, None]
    # The second design is given the evaluations of the first.
    with sqlite3.connect("a.db") as connection:
        connection.execute("DELETE FROM parts WHERE point = 1")
        connection.execute("INSERT INTO parts SELECT 1, outcome FROM parts WHERE point = 0")
    results = load_sweep(folder / "a.db")
    assert [(point.on_front, point.equal_to) for point in results.points] == [(True, None), (False, 0)]
    call("report", "a.db")
    table = csv.DictReader(io.StringIO((folder / "a.csv").read_text()))
    assert [row["equal_to"] for row in table] == ["", "0"]


def test_designs_of_other_boards_or_figures_are_not_equal():
    designs = [
        ("a", {"x": 1.0, "y": 2.0}),
        ("b", {"x": 1.0, "y": 2.0}),
        ("a", {"y": 2.0, "x": 1.0}),
        ("a", {}),
    ]
    assert first_of_equals([3, 2, 1, 0], designs.__getitem__) == {0: 0, 1: 1, 2: 0, 3: 3}


def test_shapes_of_the_convolution_engine():
    adapter = find_adapter("conv")
    for work in (conv(), conv(group=8, outputs=16), Product(rows=5000, columns=3, inner=7)):
        shape = adapter.layer_shape(layer(work))
        found = validate(Document(path=Path("a"), data=shape), TypeAdapter(ConvWorkload))
        (job,) = found.jobs
        assert sum(each.useful_macs for each in job.layers) == work.macs
    for work, says in (
        (Product(rows=4099, columns=1, inner=1), "rows of the product must be a product of two numbers"),
        (Attention(heads=1, queries=1, keys=1, query_size=1, value_size=1), "not 'attention'"),
        (Other(reason="Relu"), "kind must be a convolution or a matrix product, not 'Relu'"),
        (conv(channels=1 << 15), "channels must be from 1 to 16384"),
    ):
        with pytest.raises(InputError, match=says):
            adapter.layer_shape(layer(work))


def test_drawn_tensors_make_the_workload_that_was_asked_for():
    adapter, engine = find_adapter("conv"), find_engine("conv")
    shape = adapter.layer_shape(layer(conv(rows=6, columns=7)))
    workload = validate(Document(path=Path("a"), data=shape), TypeAdapter(engine.workload_type))
    job = adapter.job(adapter.tensors(workload, SMALL, seed=3), SMALL)
    assert adapter.workload(job, SMALL) == workload
    again = adapter.job(adapter.tensors(workload, SMALL, seed=3), SMALL)
    other = adapter.job(adapter.tensors(workload, SMALL, seed=4), SMALL)
    weights = [each.program.weights for each in (job, again, other)]
    np.testing.assert_array_equal(weights[0], weights[1])
    assert not np.array_equal(weights[0], weights[2])


def test_tensors_are_not_drawn_for_jobs_that_share_maps():
    adapter = find_adapter("conv")
    shape = adapter.layer_shape(layer(conv())) | {"maps": [{"source": {"name": "x"}, "result": "y"}]}
    workload = validate(Document(path=Path("a"), data=shape), TypeAdapter(ConvWorkload))
    with pytest.raises(InputError, match="maps must be left out"):
        adapter.job(adapter.tensors(workload, SMALL, seed=3), SMALL)


def test_a_layer_is_simulated_as_predicted(tmp_path):
    adapter, board = find_adapter("conv"), load_board("u55c")
    shape = adapter.layer_shape(layer(conv(rows=6, columns=7, pads=(1, 1, 1, 1))))
    workload = validate(Document(path=Path("a"), data=shape), TypeAdapter(ConvWorkload))
    result = run("conv", SMALL, board, adapter.tensors(workload, SMALL, seed=0), directory=tmp_path)
    assert result.bit_exact
    cycles = result.report.cycles.cycles_total
    assert abs(result.report.prediction.predicted_cycles - cycles) <= max(60, 0.02 * cycles)
