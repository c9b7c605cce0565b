"""A graph in bands and groups is that of its model, however it is cut; anything less is not."""

import json
import random
from types import SimpleNamespace

import pytest

from hw.scheduler.check.check import check
from hw.scheduler.check.form import Graph
from hw.scheduler.check.model import model_problems
from hw.scheduler.graph.bands import Cutter
from hw.scheduler.graph.documents import graph_to_json
from hw.scheduler.graph.groups import candidates, group
from hw.scheduler.plan.documents import plan_to_json
from hw.scheduler.plan.problem import Problem
from hw.scheduler.plan_model import load_fused
from tests.support.planner.graphs import random_graph
from tests.support.planner.naive_plan import naive_plan


def content(graph):
    document = json.loads(graph_to_json(graph))
    del document["format"]
    return document


def cut(graph, most, rng):
    """Cut every operator that can be into up to so many bands, and put some neighbours into groups."""
    cutter, bands = Cutter(graph), {}
    for names in [operator.outputs for operator in graph.operators] + [
        (tensor.name,) for tensor in graph.tensors if tensor.off_chip_first
    ]:
        bands |= dict.fromkeys(names, min(most, *(cutter.rows.get(name, 1) for name in names)))
    found = cutter.split({name: count for name, count in bands.items() if count > 1})
    for _ in range(8):
        if pairs := candidates(found, most_members=3):
            found = group(found, rng.choice(pairs))
    return found


@pytest.mark.parametrize(
    "name", ["minilm_layer", "squeezenet", "unet", "shufflenet", "pnasnet5_cell", "rw40"]
)
@pytest.mark.parametrize("bands", [2, 5])
def test_networks_in_bands_and_groups(name, bands):
    model, rng = load_fused(name), random.Random(bands)
    graph = cut(model, bands, rng)
    assert len(graph.operators) > len(model.operators) or name == "rw40"
    document, right = content(graph), Graph.model_validate(content(model))
    assert list(model_problems(SimpleNamespace(graph=Graph.model_validate(document)), right)) == []
    # Something is missing where a band reads one input less.
    readers = [each for each in document["operators"] if len(each["inputs"]) > 1 and not each["members"]]
    reader = rng.choice(readers)
    reader["accesses"].pop(reader["inputs"].pop(), None)
    wrong = SimpleNamespace(graph=Graph.model_validate(document))
    assert any(reader["name"] in problem for problem in model_problems(wrong, right))


@pytest.mark.parametrize("seed", range(12))
def test_plans_of_operators_with_several_results(seed):
    graph = random_graph(seed, 12)
    problem = Problem(graph=graph, word_bytes=4)
    plan = naive_plan(graph, 6 * max(problem.working_set), word_bytes=4)
    assert check(json.loads(plan_to_json(plan)), model=content(graph)) == []


def test_another_model_is_refused():
    graph = random_graph(3, 12)
    problem = Problem(graph=graph, word_bytes=4)
    plan = json.loads(plan_to_json(naive_plan(graph, 6 * max(problem.working_set), word_bytes=4)))
    assert check(plan, model=content(random_graph(4, 12)))
