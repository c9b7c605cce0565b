"""The checker accepts every right plan and refuses every wrong one, with the reason."""

import copy
import json
import random
import re
import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hw.errors import InputError
from hw.scheduler.check.check import check, check_file, totals_of
from hw.scheduler.check.form import Plan
from hw.scheduler.check.replay import replay_problems
from hw.scheduler.plan.documents import plan_to_json
from hw.scheduler.plan.problem import Problem
from tests.hw.scheduler.check.corrupted_transfers import TRANSFER_CORRUPTIONS
from tests.hw.scheduler.check.corrupting import NotHere
from tests.hw.scheduler.check.corruptions import CORRUPTIONS as PLACE_CORRUPTIONS
from tests.support.planner.graphs import pipelined_graph, random_graph
from tests.support.planner.naive_plan import naive_plan

CORRUPTIONS = PLACE_CORRUPTIONS | TRANSFER_CORRUPTIONS
SEEDS = 20
STREAMED = (("conv1+conv2", "a"), ("conv1+conv2", "skip"), ("tail", "b"))


def document(plan):
    return json.loads(plan_to_json(plan))


def streams_of(graph, problem, rng, share):
    """Choose uses to stream, none that would have to stream alone among others."""
    chosen = []
    for number, operator in enumerate(graph.operators):
        passing = [name for name in (*operator.inputs, *operator.outputs) if rng.random() < share]
        index = {tensor.name: place for place, tensor in enumerate(graph.tensors)}
        if any(problem.streams_alone(number, index[name]) for name in passing):
            passing = passing[:1]
        chosen += [(operator.name, name) for name in passing]
    return chosen


def random_plan(seed):
    """Return a plan that spills, fetches and streams."""
    rng = random.Random(seed)
    graph = random_graph(seed, rng.randint(1, 24))
    problem = Problem(graph=graph, word_bytes=rng.choice((4, 8, 32)))
    streams = streams_of(graph, problem, rng, rng.choice((0, 0.2)))
    # Windows are never larger than their tensors: room for the whole is room for the window.
    capacity = max(problem.working_set) * problem.word_bytes * rng.choice((4, 5, 8)) // 4
    return naive_plan(graph, capacity, word_bytes=problem.word_bytes, streams=streams)


def documents():
    found = [document(naive_plan(pipelined_graph(), 4096, streams=streams)) for streams in ((), STREAMED)]
    return found + [document(random_plan(seed)) for seed in range(40)]


@pytest.fixture(scope="module")
def plans():
    return documents()


@settings(max_examples=8, deadline=None)
@given(st.integers(min_value=0, max_value=2**32))
def test_right_plans_are_accepted(seed):
    plan = document(random_plan(seed))
    assert check(plan) == []
    assert list(replay_problems(Plan.model_validate(plan))) == []


def test_the_plans_to_corrupt_are_right_and_of_all_kinds(plans):
    assert [check(plan) for plan in plans] == [[]] * len(plans)
    for kind in ("streams", "fifos"):
        assert any(plan[kind] for plan in plans)
    moves = {
        (transfer["direction"], transfer["stream"] is None)
        for plan in plans
        for transfer in plan["transfers"]
    }
    assert len(moves) == 4
    assert any(plan["totals"]["avoidable_bytes"] for plan in plans)


@pytest.mark.sample(16)
@pytest.mark.parametrize("kind", CORRUPTIONS)
def test_corrupted_plans_are_refused_with_the_reason(plans, kind):
    corrupt, reason = CORRUPTIONS[kind]
    done = 0
    for seed in range(10 * SEEDS):
        rng = random.Random(seed)
        plan = copy.deepcopy(plans[seed % len(plans)])
        try:
            corrupt(plan, rng)
        except NotHere:
            continue
        problems = check(plan)
        assert any(re.search(reason, problem) for problem in problems), (seed, problems)
        done += 1
        if done == SEEDS:
            break
    assert done


def leaves(value, path=()):
    """Return the path of every value of a document."""
    if isinstance(value, dict | list):
        for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
            yield (*path, key)
            yield from leaves(inner, (*path, key))


STRANGE = (-1, 0, 1, 3, 2**70, True, None, "", "x", "read", 1.5, [], {}, [-1], ["x"], {"x": 1})


def test_no_document_stops_the_checker(plans):
    rng = random.Random(8)
    for _ in range(200):
        plan = copy.deepcopy(rng.choice(plans))
        for _ in range(rng.randint(1, 3)):
            *outer, key = rng.choice(list(leaves(plan)))
            place = plan
            for part in outer:
                place = place[part]
            place[key] = copy.deepcopy(rng.choice(STRANGE))
        assert all(isinstance(problem, str) for problem in check(plan))


REPLAYED = {
    "episode at another address": r"scratchpad: ",
    "episode moved with its transfers onto another": r"scratchpad: .* at once|scratchpad: .* finds",
    "read before the write is complete": r"memory: .* at once",
    "tensors with one home": r"memory: ",
    "home moved for one transfer": r"memory: .* finds|memory: .* at once",
    "read missing": r"scratchpad: reading of .* finds",
    "write missing": r"memory: .* finds 'nothing valid'",
    "read into another place": r"scratchpad: ",
    "write of another place": r"scratchpad: .* finds|scratchpad: .* at once",
}


@pytest.mark.parametrize("kind", REPLAYED)
def test_the_replay_alone_sees_wrong_data(plans, kind):
    """The hardware's behaviour on the plan, without the rules."""
    seen = tried = 0
    for seed in range(60):
        plan = copy.deepcopy(plans[seed % len(plans)])
        try:
            CORRUPTIONS[kind][0](plan, random.Random(seed))
        except NotHere:
            continue
        problems = list(replay_problems(Plan.model_validate(plan)))
        tried += 1
        seen += any(re.search(REPLAYED[kind], problem) for problem in problems)
    # A wrong place that nothing else uses meanwhile holds the right content: a wrong plan can work.
    assert tried >= 10
    assert seen >= tried / 2


def test_totals_are_those_of_the_plan(plans):
    for plan in plans:
        for name, value in totals_of(Plan.model_validate(plan)).items():
            assert plan["totals"][name] == value


def test_what_has_a_default_may_be_left_out(plans):
    plan = copy.deepcopy(plans[0])
    for tensor in plan["graph"]["tensors"]:
        del tensor["origin"]
    del plan["graph"]["made_by"]
    assert check(plan) == []


@pytest.mark.parametrize("value", [None, [], 3, "plan", {}])
def test_what_is_no_plan_at_all(value):
    assert check(value)


def test_files(plans, tmp_path):
    path = tmp_path / "plan.json"
    path.write_text(json.dumps(plans[0]))
    assert check_file(path) == []
    path.write_text("{")
    with pytest.raises(InputError, match=r"file must be (JSON|text)"):
        check_file(path)
    path.write_bytes(b"\xff\xfe")
    with pytest.raises(InputError, match=r"file must be (JSON|text)"):
        check_file(path)
    with pytest.raises(InputError, match="No such file"):
        check_file(tmp_path / "none.json")


def test_the_checker_knows_neither_planner_nor_solvers():
    script = "import sys, hw.scheduler.check.check; print(*sorted(sys.modules))"
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    modules = set(run.stdout.split())
    own = {name for name in modules if name.startswith("hw.scheduler.")}
    assert own
    assert all(name.startswith("hw.scheduler.check") for name in own)
    assert not modules & {
        "numpy",
        "pulp",
        "highspy",
        "ortools",
        "numba",
        "amaranth",
    }
