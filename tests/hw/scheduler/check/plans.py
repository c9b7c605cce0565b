"""Plans of every kind to make wrong, as documents, with the models they are of."""

import json

from hw.scheduler.default_plan import default_plan
from hw.scheduler.graph.bands import Cutter
from hw.scheduler.graph.documents import graph_to_json
from hw.scheduler.graph.graph import Access, Graph, Operator, Tensor, TensorKind
from hw.scheduler.graph.groups import candidates, group
from hw.scheduler.plan.documents import plan_to_json
from hw.scheduler.plan_model import load_fused
from tests.support.planner.naive_plan import naive_plan


def chain(*, kernel=3):
    """Four convolutions of 24 rows, and a sum that reads the first one again."""

    def tensor(name, kind=TensorKind.ACTIVATION):
        return Tensor(name=name, size_bytes=24 * 64, shape=(24, 64), kind=kind)

    def operator(name, inputs, output, reach):
        access = Access(kernel=reach, pad=reach // 2)
        return Operator(
            name=name, kind="conv", inputs=inputs, outputs=(output,), macs=50_000, weight_bytes=300,
            accesses=dict.fromkeys(inputs, access), fused=(f"{name}.relu",),
        )  # fmt: skip

    return Graph(
        name="chain",
        tensors=(tensor("x", TensorKind.INPUT), *map(tensor, "abcd"), tensor("y", TensorKind.OUTPUT)),
        operators=(
            operator("f", ("x",), "a", kernel), operator("g", ("a",), "b", kernel),
            operator("h", ("b",), "c", kernel), operator("i", ("c",), "d", kernel),
            operator("j", ("a", "d"), "y", 1),
        ),
    )  # fmt: skip


def grouped(graph):
    return group(graph, candidates(graph)[0])


def banded(graph):
    return Cutter(graph).split(dict.fromkeys("bcd", 4) | {"y": 3, "a": 2})


def content(text):
    document = json.loads(text)
    document.pop("format")
    return document


def document(plan):
    found = json.loads(plan_to_json(plan))
    order = {"stage": "order", "solver": "annealing", "status": "heuristic", "unit": "bytes", "note": ""}
    found["certificate"]["stages"].append({**order, "objective": 10**6, "bound": 0})
    return found


def cases():
    """Plans of every kind with their models: spills, windows, groups, bands; one is the planner's."""
    whole, rows = chain(), 24 * 64
    streams = [("g", "b"), ("h", "b"), ("j", "y")]
    model = content(graph_to_json(whole))
    plans = {
        "spills": naive_plan(whole, 2 * rows + 256, streams=[("j", "y")]),
        "windows": naive_plan(whole, 3 * rows, streams=streams),
        "groups": naive_plan(grouped(whole), 2 * rows + 512, streams=[("j", "y")]),
        "bands": naive_plan(banded(whole), 2 * rows),
        "bands and groups": naive_plan(grouped(banded(whole)), 2 * rows),
    }
    found = {kind: (document(plan), model) for kind, plan in plans.items()}
    made = json.loads(plan_to_json(default_plan(128)))
    return found | {"planned": (made, content(graph_to_json(load_fused("minilm_layer"))))}


CASES = cases()


def at(plan, path):
    for key in path:
        plan = plan[key]
    return plan
