"""Workloads of ZigZag: its equations become layers, and what is wrong is one line."""

import copy

import pytest
import yaml

from hw.errors import InputError
from sim.workloads.layers import Convolution, Product
from sim.workloads.reader import read_workload

CONV = {
    "id": 0,
    "operator_type": "Conv",
    "equation": "O[b][k][oy][ox]+=W[k][c][fy][fx]*I[b][c][iy][ix]",
    "dimension_relations": ["ix=2*ox+1*fx", "iy=2*oy+1*fy"],
    "loop_dims": ["B", "K", "C", "OY", "OX", "FY", "FX"],
    "loop_sizes": [1, 64, 3, 112, 100, 7, 5],
    "operand_precision": {"W": 8, "I": 8, "O": 16, "O_final": 8},
    "operand_source": {"I": 0, "W": 0},
}
#: As its ONNX parser writes a depthwise layer: groups are a loop, padding is of the map's axes.
DEPTHWISE = {
    **CONV,
    "id": 1,
    "name": "dw",
    "equation": "O[b][g][k][oy][ox]+=W[g][c][fy][fx]*I[b][g][c][iy][ix]",
    "dimension_relations": ["ix=1*ox+1*fx", "iy=1*oy+2*fy"],
    "loop_dims": ["B", "K", "G", "OX", "OY", "C", "FX", "FY"],
    "loop_sizes": [2, 1, 64, 56, 50, 1, 3, 3],
    "pr_loop_dims": ["IX", "IY"],
    "pr_loop_sizes": [56, 50],
    "padding": [[1, 1], [2, 2]],
}
GEMM = {
    "id": 2,
    "operator_type": "Gemm",
    "equation": "O[b][k]+=I[b][c]*W[c][k]",
    "dimension_relations": [],
    "loop_dims": ["B", "C", "K"],
    "loop_sizes": [5, 6, 7],
    "operand_precision": {"W": 4, "I": 8, "O": 32, "O_final": 32},
}
POOL = {**CONV, "id": 3, "operator_type": "Pooling"}
ADD = {
    "id": 4,
    "operator_type": "Add",
    "equation": "O[b][g]=W[b][g]+I[b][g]",
    "loop_dims": ["B", "G"],
    "loop_sizes": [1, 64],
    "operand_precision": {"W": 8, "I": 8, "O": 16, "O_final": 8},
}


def read(tmp_path, *layers):
    path = tmp_path / "a.yaml"
    path.write_text(yaml.safe_dump(list(layers), sort_keys=False))
    return read_workload(path, {})


def test_layers_are_what_their_equations_say(tmp_path):
    found = read(tmp_path, *map(copy.deepcopy, (CONV, DEPTHWISE, GEMM, POOL, ADD)))
    conv, depthwise, gemm, pool, add = found.layers
    assert conv.work == Convolution(
        channels=3, rows=229, columns=203, outputs=64, kernel=(7, 5), strides=(2, 2)
    )
    assert conv.macs == 64 * 3 * 112 * 100 * 7 * 5
    assert (depthwise.name, depthwise.count) == ("dw", 2)
    assert depthwise.work == Convolution(
        channels=64, rows=50, columns=56, outputs=64, kernel=(3, 3), dilations=(2, 1), pads=(2, 1, 2, 1),
        group=64,
    )  # fmt: skip
    assert gemm.work == Product(rows=5, columns=7, inner=6)
    assert [layer.work.reason for layer in (pool, add)] == ["Pooling", "Add"]
    assert [layer.name for layer in (conv, gemm)] == ["Conv_0", "Gemm_2"]
    assert found.notes == ("operands of 4 bits count as int8",)
    assert conv.where.endswith("a.yaml:1")


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"operator_type": "Conb"}, r"a.yaml:2: 0.operator_type must be one of Conv, .*did you mean 'Conv'"),
        ({"colour": 1}, r"a.yaml:\d+: 0.colour must be one of id, name"),
        ({"id": "x"}, "0.id must be a whole number, not 'x'"),
        ({"name": 3}, "0.name must be text"),
        ({"equation": "O=I"}, r"a.yaml:3: 0.equation must be as in O\[b\]"),
        ({"equation": "O[b][k]+=W[k][z]*I[b][z]"}, "dimension_relations; z is none"),
        ({"dimension_relations": ["ix=ox"]}, r"0.dimension_relations.0 must be as in ix=2\*ox"),
        ({"dimension_relations": ["ix=0*ox+1*fx"]}, "of factors above 0"),
        ({"dimension_relations": "ix"}, "0.dimension_relations must be a list"),
        ({"loop_dims": "B"}, "0.loop_dims must be a list of names"),
        ({"loop_dims": ["B"] * 7}, "0.loop_dims must be different names"),
        ({"loop_sizes": [1, 2]}, "0.loop_sizes must be a list of 7 sizes"),
        ({"loop_sizes": [1, 64, 0, 112, 112, 7, 7]}, r"a.yaml:\d+: 0.loop_sizes.2 must be a whole number"),
        ({"padding": [[1, 1]]}, "0.padding must be a list of .*, one for each of pr_loop_dims"),
        ({"padding": [[1, 1]], "pr_loop_dims": ["IZ"]}, "0.pr_loop_dims.0 must be names of"),
        ({"padding": [[1, -1]], "pr_loop_dims": ["IX"]}, "0.padding.0 must be two whole numbers"),
        ({"padding": [[200, 200]], "pr_loop_dims": ["IX"]}, "0.padding must be such that"),
    ],
)
def test_what_is_wrong_is_one_line(tmp_path, change, says):
    with pytest.raises(InputError, match=says) as raised:
        read(tmp_path, {**copy.deepcopy(CONV), **change})
    assert "\n" not in str(raised.value)


def test_other_content(tmp_path):
    with pytest.raises(InputError, match="layers must be at least 1"):
        read(tmp_path)
    with pytest.raises(InputError, match=r"a.yaml:1: 0 must be a layer: a mapping"):
        read(tmp_path, 7)
    (tmp_path / "a.yaml").write_text("a: 1\n")
    with pytest.raises(InputError, match="file content must be a list"):
        read_workload(tmp_path / "a.yaml", {})
