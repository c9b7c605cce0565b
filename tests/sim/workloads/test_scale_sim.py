"""Topologies of SCALE-Sim: forms of the shipped tables, and the one line that says what is wrong."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hw.errors import InputError
from sim.workloads.layers import Attention, Convolution, Product
from sim.workloads.reader import read_workload

CONV = "Layer name, IFMAP Height, IFMAP Width, Filter Height, Filter Width, Channels, Num Filter, Strides,\n"
GEMM = "Layer, M, N, K,\n"


def read(tmp_path, text, name="a.csv"):
    path = tmp_path / name
    path.write_text(text)
    return read_workload(path, {})


def test_convolutions_with_the_forms_of_shipped_tables(tmp_path):
    text = (
        CONV
        + "\n,,,,,,,\nConv1 , 224 ,224,11,11,3,96,4,\n\tConv2_dw,112,112,3,3,1,1,1,#dw\nlast,7,7,1,1,8,9,1\n"
    )
    found = read(tmp_path, text)
    assert [layer.name for layer in found.layers] == ["Conv1", "Conv2_dw", "last"]
    assert [layer.where.rpartition(":")[2] for layer in found.layers] == ["4", "5", "6"]
    first = found.layers[0].work
    assert first == Convolution(
        channels=3, rows=224, columns=224, outputs=96, kernel=(11, 11), strides=(4, 4), pads=(0, 0, 3, 3)
    )
    assert first.out_size == (55, 55)
    assert first.macs == 55 * 55 * 11 * 11 * 3 * 96


def test_further_columns(tmp_path):
    head = CONV.rstrip().rstrip(",")
    found = read(tmp_path, f"{head}, Batch Size, Sparsity\na,8,8,1,1,4,4,1,3,1:1\nb,8,8,1,1,4,4,1,1,2:4\n")
    assert found.layers[0].count == 3
    assert found.layers[1].work.reason == "sparse weights, 2:4"
    both = CONV.replace("Strides", "Stride height, Stride width")
    assert read(tmp_path, f"{both}a,9,9,3,3,4,4,2,3,\n").layers[0].work.strides == (2, 3)
    named = read(tmp_path, f"{head},,,Eh,Ew,e2\na,9,9,3,3,4,4,2,,,4,4,16\n")  # as Resnet50.csv
    assert named.layers[0].work.macs == 16 * 9 * 4 * 4


def test_depthwise_layers_by_their_names(tmp_path):
    (layer,) = read(tmp_path, f"{CONV}DP_1,8,8,3,3,6,1,1,\n").layers
    assert (layer.work.group, layer.work.outputs, layer.macs) == (6, 6, 36 * 9 * 6)


def test_matrix_products_and_attention_among_them(tmp_path):
    found = read(tmp_path, GEMM + "QKT,32,48,16,\nQKTV,32,20,48,\nLinear1,32,64,16,\nLinear2,32,16,64,\n")
    assert found.layers[0].work == Product(rows=32, columns=48, inner=16)
    (attention,) = found.attentions
    assert attention.work == Attention(heads=1, queries=32, keys=48, query_size=16, value_size=20)
    assert attention.parts == ("QKT", "QKTV")
    assert attention.macs == sum(layer.macs for layer in found.layers[:2])


@given(
    size=st.integers(1, 300),
    filter_size=st.integers(1, 12),
    stride=st.integers(1, 9),
    channels=st.integers(1, 9),
    filters=st.integers(1, 9),
)
def test_multiply_accumulates_are_those_of_the_tool(
    tmp_path_factory, size, filter_size, stride, channels, filters
):
    """`topo_calc_hyperparams` of its `topology_utils`: ceil((size - filter + stride) / stride)."""
    size += filter_size - 1
    folder = tmp_path_factory.mktemp("a")
    line = f"a,{size},{size},{filter_size},{filter_size},{channels},{filters},{stride},\n"
    (layer,) = read(folder, CONV + line).layers
    side = math.ceil((size - filter_size + stride) / stride)
    assert layer.work.out_size == (side, side)
    assert layer.macs == side * side * filter_size * filter_size * channels * filters


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", r"a.csv:1: header must be Layer, Ifmap Height, .*; or Layer, M, N, K, not ''"),
        ("Layer, M, K, N\na,1,1,1\n", "a.csv:1: header must be Layer"),
        (GEMM, "a.csv: layers must be at least 1"),
        (f"{GEMM}a,1,0,1\n", "a.csv:2: n of a must be a whole number from 1 to 1,000,000,000, not '0'"),
        (f"{GEMM}a,1,1\n", "a.csv:2: k of a must be a whole number .*, not ''"),
        (f"{GEMM}a,1,1,1\n,2,2,2\n", "a.csv:3: layer must be a name of printable characters"),
        (f"{GEMM}a,1,1,1,7,8\n", "a.csv:2: cells must be at most 5, one for each column, not '8'"),
        (f"{GEMM}a,1,x,1\n", "n of a must be a whole number"),
        (f"{GEMM}a,1,-1,1\n", "n of a must be a whole number"),
        (f"{GEMM}a,1,99999999999,1\n", "n of a must be a whole number"),
        (f'{GEMM}"a,1,1,1\n', "a.csv: table must be comma-separated values"),
        (GEMM.replace("K,", "K, Colour"), "a.csv:1: column must be one of batch size, sparsity, eh, ew, e2"),
        (GEMM.replace("K,", "K, Sparsity") + "a,1,1,1,3:2\n", "sparsity of a must be N:M with N from 1 to M"),
        (f"{CONV}a,4,9,5,5,1,1,1,\n", "a.csv:2: ifmap height of a must be at least 5, the filter's, not 4"),
        (f"{CONV}a,9,9,5,5,1,1,0,\n", "a.csv:2: strides of a must be a whole number"),
    ],
)
def test_what_is_wrong_is_one_line(tmp_path, text, says):
    with pytest.raises(InputError, match=says) as raised:
        read(tmp_path, text)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("name", "says"),
    [("a.txt", "a .csv file of SCALE-Sim, a .yaml file of ZigZag"), ("none.csv", "a file that exists")],
)
def test_what_is_no_workload(tmp_path, name, says):
    (tmp_path / "a.txt").write_text("a")
    with pytest.raises(InputError, match=says):
        read_workload(tmp_path / name, {})
    (tmp_path / "a.csv").write_bytes(b"\xff\xfe")
    with pytest.raises(InputError, match="text in UTF-8"):
        read_workload(tmp_path / "a.csv", {})
    (tmp_path / "b.csv").write_text(f"{GEMM}a,1,1,1\n")
    with pytest.raises(InputError, match="--dim must be left out"):
        read_workload(tmp_path / "b.csv", {"N": 1})
