"""The tables of docs/planner-graphs.md agree with the importers."""

import json
import re
from pathlib import Path

import pytest

from hw.scheduler.graph.documents import graph_to_json
from hw.scheduler.graph.graph import Access, Operator, Tensor
from hw.scheduler.graph.importers import load_model
from hw.scheduler.graph.importers.onnx_operators import OPERATORS, VIEWS
from hw.scheduler.graph.importers.onnx_products import PRODUCTS
from hw.scheduler.graph.importers.onnx_standins import STAND_INS
from hw.scheduler.graph.networks import network_names
from sim.plans.commands import NETWORK_COLUMNS, network_row

PAGE = (Path(__file__).parents[3] / "docs" / "planner-graphs.md").read_text(encoding="utf-8")


def cells(line):
    return tuple(cell.strip() for cell in line.strip().strip("|").split("|"))


def table_after(heading):
    """Rows of the first table that has these words as its first line."""
    lines = PAGE[PAGE.index(heading) :].splitlines()
    rows = []
    for line in lines[2:]:
        if not line.startswith("|"):
            return rows
        rows.append(cells(line))
    return rows


def test_the_figures_of_the_networks_are_those_of_the_command():
    rows = table_after("| " + " | ".join(NETWORK_COLUMNS) + " |")
    assert rows == [network_row(name) for name in network_names()]


def test_every_network_has_a_source():
    named = [
        name for row in table_after("| networks | made from |") for name in re.findall(r"`(\w+)`", row[0])
    ]
    assert sorted(named) == list(network_names())


def test_the_operators_are_those_supported():
    starts = ("Supported operators", "as its quantization and fusions", "These only change the shape")
    own, runtime, views, end = map(PAGE.index, (*starts, "An operator with constant operands"))
    names = sorted({*OPERATORS, *PRODUCTS, *STAND_INS})
    for begin, until, listed in (
        (own, PAGE.index("Of onnxruntime's domain"), [name for name in names if "." not in name]),
        (runtime, views, [name.rpartition(".")[2] for name in names if "." in name]),
        (views, end, sorted(VIEWS)),
    ):
        assert re.findall(r"`(\w+)`", PAGE[begin:until]) == listed


def test_the_examples_are_graphs(tmp_path):
    own, small = re.findall(r"```json\n(.*?)```", PAGE, re.DOTALL)
    for text in (own, small):
        path = tmp_path / "g.json"
        path.write_text(text)
        graph = load_model(str(path))
        path.write_text(graph_to_json(graph))
        assert load_model(str(path)) == graph
    convolution = json.loads(own)["operators"][0]
    assert convolution["macs"] == 16 * 16 * 16 * 3 * 9
    assert convolution["weight_bytes"] == 16 * 3 * 9 + 16


@pytest.mark.parametrize(("heading", "described"), [("tensor", Tensor), ("operator", Operator)])
def test_every_key_is_described(heading, described):
    rows = table_after(f"| {heading} | default | |")
    named = {name for row in rows for name in re.findall(r"`(\w+)`", row[0])}
    assert named == set(described.__dataclass_fields__)


def test_every_key_of_an_access_is_described():
    (row,) = (row for row in table_after("| operator | access |") if row[0] == "elementwise")
    assert set(re.findall(r"`(\w+)`", row[1])) == set(Access.__dataclass_fields__)
