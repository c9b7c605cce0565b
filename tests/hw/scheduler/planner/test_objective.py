"""The planner's options: objectives and orders."""

import itertools
import json

import pytest

from hw.errors import InputError
from hw.scheduler.check.check import check
from hw.scheduler.graph.graph import Graph, Operator, Tensor, TensorKind
from hw.scheduler.plan.documents import plan_to_json
from hw.scheduler.plan.options import CRITERIA, OrderChoice, PlanOptions, When
from hw.scheduler.plan.problem import Problem
from hw.scheduler.planner.order.cosma import MAX_OPERATORS, solve_published
from hw.scheduler.planner.planner import make_plan
from hw.scheduler.planner.residency.residency import least_capacity, solve_residency
from tests.support.planner.networks import unet
from tests.support.planner.orders import wide_problem

WHOLE = {"streaming": When.NEVER, "tiling": When.NEVER, "pipelining": When.NEVER}


def planned(graph, scratchpad_bytes, **options):
    """A plan that the checker accepts."""
    plan = make_plan(graph, PlanOptions(scratchpad_bytes=scratchpad_bytes, **options))
    assert check(json.loads(plan_to_json(plan))) == []
    return plan


def measures(plan):
    totals = plan.totals
    moved = totals.offchip_read_bytes + totals.offchip_write_bytes + totals.parameter_bytes
    return {
        "bytes": moved,
        "peak": totals.peak_bytes,
        "transfers": totals.transfers_total,
        "latency": totals.predicted_cycles,
    }


# Residency ----


def contested():
    """A network in which, at equal bytes, one large tensor leaves in few transfers, or two small ones for a
    low peak: of 10 words, the step that makes `p` leaves too few for `a`, `b` and `c`.
    """
    size = {"x": 1, "y": 1, "a": 4, "b": 2, "c": 2, "p": 4, "q": 2, "r": 4, "out": 1}
    kinds = {"x": TensorKind.INPUT, "y": TensorKind.INPUT, "p": TensorKind.OUTPUT, "out": TensorKind.OUTPUT}
    reads = {"a": "x", "b": "x", "c": "x", "p": "y", "q": "a", "r": "q", "out": "bcr"}
    return Graph(
        name="contested",
        tensors=tuple(
            Tensor(name=name, size_bytes=32 * words, kind=kinds.get(name, TensorKind.ACTIVATION))
            for name, words in size.items()
        ),
        operators=tuple(
            Operator(name=f"make_{name}", kind="x", inputs=tuple(inputs), outputs=(name,))
            for name, inputs in reads.items()
        ),
    )


@pytest.mark.parametrize(
    ("minimise", "peak_words", "avoidable_transfers"),
    [
        (("bytes", "peak", "transfers"), 9, 4),
        (("bytes", "peak"), 9, 4),
        (("bytes", "transfers", "peak"), 10, 2),
        (("bytes", "transfers"), 10, 2),
    ],
)
def test_peak_and_transfers_are_minimised_in_the_order_asked_for(minimise, peak_words, avoidable_transfers):
    problem = Problem(graph=contested())
    found = solve_residency(problem, range(7), 10, streaming=False, minimise=minimise)
    assert found.avoidable_words == 8
    assert (found.peak_words, found.transfers - 4) == (peak_words, avoidable_transfers)


@pytest.mark.parametrize("streaming", [False, True])
@pytest.mark.parametrize("seed", range(8))
def test_every_criterion_is_as_good_as_alone_where_it_comes_second(seed, streaming):
    problem = wide_problem(seed, 9)
    order = tuple(range(problem.operator_count))
    capacity = least_capacity(problem, order, streaming=streaming) * 9 // 8

    def best(*minimise):
        return solve_residency(problem, order, capacity, streaming=streaming, minimise=("bytes", *minimise))

    low, few = best("peak", "transfers"), best("transfers", "peak")
    assert low.avoidable_words == few.avoidable_words == best().avoidable_words
    assert low.peak_words == best("peak").peak_words <= few.peak_words <= capacity
    assert few.transfers == best("transfers").transfers <= low.transfers


# Plans ----


def test_the_first_criterion_is_won_by_the_plan_that_puts_it_first():
    graph = unet(side=16, base=4, levels=2)
    objectives = {
        "bytes": ("bytes", "latency", "peak", "transfers"),
        "latency": ("latency", "bytes", "peak", "transfers"),
        "default": CRITERIA,
    }
    plans = {name: measures(planned(graph, 2560, objective=each)) for name, each in objectives.items()}
    for name in ("bytes", "latency"):
        assert plans[name][name] == min(plan[name] for plan in plans.values())
    assert plans["latency"]["latency"] < plans["default"]["latency"]
    assert plans["latency"]["bytes"] > plans["default"]["bytes"]


def test_transfers_may_count_before_the_peak():
    options = {"order": OrderChoice.DEFAULT, **WHOLE}
    low = planned(contested(), 10 * 32, **options)
    few = planned(contested(), 10 * 32, objective=("bytes", "transfers", "peak"), **options)
    assert low.totals.avoidable_bytes == few.totals.avoidable_bytes == 8 * 32
    assert (low.totals.peak_bytes, low.totals.transfers_total) == (9 * 32, 8)
    assert (few.totals.peak_bytes, few.totals.transfers_total) == (10 * 32, 6)
    assert few.options["objective"] == "bytes,transfers,peak"


def test_objectives_that_make_sense_are_taken_and_others_refused():
    taken = set()
    for count in range(len(CRITERIA) + 1):
        for objective in itertools.permutations(CRITERIA, count):
            words = [criterion for criterion in objective if criterion != "latency"]
            if words[:1] == ["bytes"]:
                PlanOptions(scratchpad_bytes=1, objective=objective)
                taken.add(objective)
            else:
                with pytest.raises(InputError, match="bytes before peak and transfers"):
                    PlanOptions(scratchpad_bytes=1, objective=objective)
    # Bytes alone, with one of the others and with both, each also with latency in any place.
    assert len(taken) == (1 + 2) + (2 + 2 * 3) + (2 + 2 * 4)
    with pytest.raises(InputError, match="each criterion at most once"):
        PlanOptions(scratchpad_bytes=1, objective=("bytes", "bytes"))
    with pytest.raises(InputError, match="objective must be made of bytes, peak, transfers, latency"):
        PlanOptions(scratchpad_bytes=1, objective=("bytes", "speed"))


# Orders ----


def tight(seed, operators=7):
    """A network and a scratchpad with no room to spare."""
    problem = wide_problem(seed, operators)
    return problem, max(problem.working_set) * problem.word_bytes


@pytest.mark.sample(1)
@pytest.mark.parametrize("seed", range(4))
def test_the_choices_of_orders_are_ranked_as_they_should(seed):
    problem, scratchpad = tight(seed)
    plans = {choice: planned(problem.graph, scratchpad, order=choice, **WHOLE) for choice in OrderChoice}
    moved = {choice: plan.totals.avoidable_bytes for choice, plan in plans.items()}
    _, published = solve_published(problem, scratchpad // problem.word_bytes)
    assert moved[OrderChoice.COSMA] == published.objective * problem.word_bytes
    assert moved[OrderChoice.FREE] == moved[OrderChoice.COSMA] <= moved[OrderChoice.DEFAULT]
    assert moved[OrderChoice.FREE] <= moved[OrderChoice.MIN_PEAK]
    certificate = plans[OrderChoice.COSMA].certificate
    assert certificate.claim == "optimal"
    assert certificate.stages[0].solver.startswith("COSMA's program, HiGHS")
    default = plans[OrderChoice.DEFAULT]
    assert [step.operator for step in default.steps] == [each.name for each in problem.graph.operators]


def test_cosmas_program_knows_whole_operators_only():
    _, scratchpad = tight(0)
    options = PlanOptions(scratchpad_bytes=scratchpad, order=OrderChoice.COSMA)
    assert {options.streaming, options.tiling, options.pipelining} == {When.NEVER}
    for name in ("streaming", "tiling", "pipelining"):
        with pytest.raises(InputError, match=f"{name} must be auto or never with COSMA's program"):
            PlanOptions(scratchpad_bytes=scratchpad, order=OrderChoice.COSMA, **{name: When.ALWAYS})


def test_cosmas_program_refuses_large_networks():
    graph = wide_problem(0, MAX_OPERATORS + 1).graph
    message = f"operators of the graph must be at most {MAX_OPERATORS} for COSMA's program"
    with pytest.raises(InputError, match=message):
        make_plan(graph, PlanOptions(scratchpad_bytes=10**6, order=OrderChoice.COSMA))


def test_cosmas_program_stopped_by_a_limit_still_gives_a_plan():
    problem, scratchpad = tight(1, operators=10)
    plan = planned(problem.graph, scratchpad, order=OrderChoice.COSMA, time_limit_s=0.05)
    assert "stopped by the time limit of 0.05 s" in plan.certificate.stages[0].note
    assert plan.certificate.bound_avoidable_bytes <= plan.totals.avoidable_bytes
