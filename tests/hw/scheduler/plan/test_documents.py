import json

import pytest

from hw.errors import InputError
from hw.scheduler.graph.documents import graph_to_json, read_graph
from hw.scheduler.graph.graph import Access, Graph, Operator, Tensor, TensorKind


@pytest.fixture
def graph():
    return Graph(
        name="two",
        tensors=(
            Tensor(name="x", size_bytes=96, shape=(3, 32), kind=TensorKind.INPUT),
            Tensor(name="y", size_bytes=64),
            Tensor(name="z", size_bytes=12, shape=(3, 8), element_bits=4, kind=TensorKind.OUTPUT),
        ),
        operators=(
            Operator(
                name="f",
                kind="conv",
                inputs=("x",),
                outputs=("y",),
                macs=7,
                accesses={"x": Access(kernel=3, pad=1)},
            ),
            Operator(name="g", kind="add", inputs=("y", "x"), outputs=("z",), weight_bytes=5),
        ),
        made_by="a test",
    )


def written(path, graph, change=lambda document: None):
    document = json.loads(graph_to_json(graph))
    change(document)
    path.write_text(json.dumps(document))
    return path


def test_a_graph_comes_back_as_it_was(graph, tmp_path):
    path = tmp_path / "g.json"
    path.write_text(graph_to_json(graph))
    assert read_graph(path) == graph
    assert graph_to_json(read_graph(path)) == path.read_text()


def test_what_has_a_default_may_be_left_out(tmp_path):
    path = tmp_path / "g.json"
    path.write_text(
        json.dumps(
            {
                "format": "loomwork-graph/1",
                "name": "g",
                "tensors": [
                    {"name": "x", "size_bytes": 4, "kind": "input"},
                    {"name": "y", "size_bytes": 4, "kind": "output"},
                ],
                "operators": [{"name": "f", "kind": "relu", "inputs": ["x"], "outputs": ["y"]}],
            }
        )
    )
    assert read_graph(path).operators[0].macs == 0


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda d: d.update(format="x"), "must be 'loomwork-graph/1', not 'x'"),
        (lambda d: d.update(colour=1), "key must be one of name, tensors, operators, made_by, not 'colour'"),
        (lambda d: d["operators"][0]["accesses"]["x"].update(holes=2), "not 'operators.0.accesses.x.holes'"),
        (lambda d: d["tensors"][1].update(size_bytes=-64), "size_bytes of tensor 'y' must be from 1 to"),
        (lambda d: d["tensors"][1].update(size_bytes="many"), "tensors.1.size_bytes must be"),
        (lambda d: d["tensors"][1].update(kind="soup"), "tensors.1.kind must be"),
        (lambda d: d["tensors"][1].pop("name"), "tensors.1.name must be"),
        (lambda d: d["operators"].append(dict(d["operators"][0], name="h")), "must be written by one"),
    ],
)  # fmt: skip
def test_what_is_no_graph_names_file_and_field(graph, tmp_path, change, message):
    path = written(tmp_path / "g.json", graph, change)
    with pytest.raises(InputError) as caught:
        read_graph(path)
    assert message in str(caught.value)
    assert str(path) in str(caught.value)


@pytest.mark.parametrize("content", [b"{", b"\xff\xfe", b"[1]", b"null"])
def test_what_is_no_json(tmp_path, content):
    path = tmp_path / "g.json"
    path.write_bytes(content)
    with pytest.raises(InputError, match=r"g\.json"):
        read_graph(path)


def test_no_file(tmp_path):
    with pytest.raises(InputError, match="No such file"):
        read_graph(tmp_path / "none.json")
