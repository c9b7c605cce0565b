"""The small JSON form that counts in KiB."""

import json
import re
from pathlib import Path

import pytest

from hw.edge import Document
from hw.errors import InputError
from hw.scheduler.graph.graph import TensorKind
from hw.scheduler.graph.importers import load_model
from hw.scheduler.graph.importers.kib import import_kib


def operator(number, kib, op, *inputs, **more):
    return {"id": number, "kib": kib, "op": op, "inputs": list(inputs), **more}


def document():
    """Two sources, a sum that reads one of them twice, and two results."""
    return {
        "name": "small",
        "unit": "KiB",
        "operators": [
            operator(0, 3, "in", source=True),
            operator(1, 5, "kv_cache", source=True),
            operator(2, 2, "conv", 0),
            operator(3, 7, "add", 2, 1, 2),
            operator(4, 1, "pool", 2),
        ],
    }


def test_sources_are_tensors_and_everything_else_operators():
    graph = imported(document(), made_by="me")
    assert (graph.name, graph.made_by) == ("small", "me")
    assert {tensor.name: (tensor.size_bytes, tensor.kind) for tensor in graph.tensors} == {
        "t0": (3072, TensorKind.INPUT),
        "t1": (5120, TensorKind.CACHE),
        "t2": (2048, TensorKind.ACTIVATION),
        "t3": (7168, TensorKind.OUTPUT),
        "t4": (1024, TensorKind.OUTPUT),
    }
    assert [(made.name, made.kind, made.inputs, made.outputs) for made in graph.operators] == [
        ("conv.2", "conv", ("t0",), ("t2",)),
        ("add.3", "add", ("t2", "t1"), ("t3",)),
        ("pool.4", "pool", ("t2",), ("t4",)),
    ]


def test_both_json_forms_are_told_apart(tmp_path):
    path = tmp_path / "small.json"
    path.write_text(json.dumps(document()))
    assert load_model(str(path)) == imported(document())


def imported(content, **more):
    return import_kib(Document(path=Path("g.json"), data=content), **more)


def changed(place, value):
    """Change one field of one operator; take it out when the value is None."""
    made = document()
    number, field = place
    if value is None:
        del made["operators"][number][field]
    else:
        made["operators"][number][field] = value
    return made


@pytest.mark.parametrize(
    ("place", "value", "message"),
    [
        ((2, "kib"), -4, "operators.2.kib must be greater than 0, not -4"),
        ((2, "kib"), 0, "operators.2.kib must be greater than 0, not 0"),
        ((2, "kib"), "4", "operators.2.kib must be a whole number, not '4'"),
        ((2, "kib"), True, "operators.2.kib must be a whole number, not True"),
        ((2, "kib"), 1.5, "operators.2.kib must be a whole number, not 1.5"),
        ((2, "kib"), None, "operators.2.kib must be given, not 'missing'"),
        ((2, "inputs"), None, "operators.2.inputs must be given, not 'missing'"),
        ((2, "inputs"), [9], "operators.2.inputs.0 must be the id of an operator, not 9"),
        ((2, "size"), 4, "key must be one of id, kib, source, op, inputs, not 'operators.2.size'"),
        ((2, "id"), 4, "operators.2.id must be used once, not 4"),
        ((2, "kib"), 1 << 22, "size_bytes of tensor 't2' must be from 1 to 4294967295, not 4294967296"),
        ((2, "inputs"), [0, 3], "graph must be without a cycle, not 'conv.2 -> add.3 -> conv.2'"),
        ((2, "inputs"), [0, 2], "tensors of operator 'conv.2' must be named once each, not 't2'"),
    ],
)
def test_wrong_documents(tmp_path, place, value, message):
    path = tmp_path / "wrong.json"
    path.write_text(json.dumps(changed(place, value)))
    with pytest.raises(InputError, match=re.escape(message)):
        load_model(str(path))


def test_a_source_that_nobody_reads():
    made = document()
    made["operators"].append(operator(5, 1, "in", source=True))
    with pytest.raises(InputError, match="tensor 't5' must be read by at least one"):
        imported(made)


@pytest.mark.parametrize("operators", [None, {}, [], [1], [operator(0, 1, "in", source=True)]])
def test_documents_without_operators(operators):
    with pytest.raises(InputError):
        imported({"name": "empty", "operators": operators})
