"""Plans that are false on purpose, and consistent: each is refused in one line, or its figure claimed."""

import copy
import json
import re

import pytest

from hw.errors import InputError
from hw.scheduler.check.check import check, check_file, totals_of
from hw.scheduler.check.evidence import evidence
from hw.scheduler.check.form import Plan
from tests.hw.scheduler.check.plans import CASES, at


def raised(plan, *, status="heuristic", bound=False):
    """Claim the plan's own bytes as the bound of all orders, and let the stage of the order say so, too."""
    certificate, moved = plan["certificate"], plan["totals"]["avoidable_bytes"]
    residency, order = certificate["stages"]
    certificate |= {"claim": "optimal", "bound_avoidable_bytes": moved, "order_bound_avoidable_bytes": moved}
    residency["bound"] = moved
    order["status"] = status
    if bound:
        order.update(objective=moved, bound=moved)
    return plan


def without_parameters(plan):
    for operator in plan["graph"]["operators"]:
        for each in (operator, *operator["members"]):
            each["weight_bytes"] = 0
    plan["totals"]["parameter_bytes"] = 0
    return plan


def set_to(*path, value):
    def corrupt(plan):
        at(plan, path[:-1])[path[-1]] = value(at(plan, path)) if callable(value) else value
        return plan

    return corrupt


def a_fifo_of_one_byte(plan):
    group = next(each for each in plan["graph"]["operators"] if each["members"])
    group["fifo_bytes"] = 1
    return plan


def band_without_a_halo(plan):
    operator = next(each for each in plan["graph"]["operators"] if each["name"] == "h#1")
    del operator["accesses"][operator["inputs"].pop()]
    return plan


def fewer_macs(plan):
    step = next(each for each in plan["steps"] if each["operator"] == "h#1")
    operator = next(each for each in plan["graph"]["operators"] if each["name"] == "h#1")
    operator["macs"], step["compute_cycles"] = 4096, 1
    return plan


def half_a_tensor(plan):
    tensor = next(each for each in plan["graph"]["tensors"] if each["name"] == "b")
    tensor.update(shape=[12, 64], size_bytes=12 * 64)
    for each in (*plan["episodes"], *plan["transfers"]):
        if each["tensor"] == "b":
            each["size_bytes"] = 12 * 64
    return plan


def one_fifo_of_one_byte(plan):
    """In the graph, in the step, and between the members: a tensor of one byte passes it."""
    group = next(each for each in plan["graph"]["operators"] if each["members"])
    group["inner"][0].update(size_bytes=1, shape=[1])
    group["fifo_bytes"] = 32
    for fifo in plan["fifos"]:
        fifo["size_bytes"] = 32
    plan["totals"] |= totals_of(Plan.model_validate(plan))
    return plan


REFUSED = {
    "claim raised": ("spills", raised, "bound 3072, but stage 'order' states 0"),
    "claim and status raised": (
        "spills",
        lambda plan: raised(plan, status="optimal"),
        "bound 3072, but stage 'order' states 0",
    ),
    "bound of the order raised": (
        "spills",
        set_to("certificate", "order_bound_avoidable_bytes", value=3072),
        "bound 3072 of this order, but stage 'residency' states 0",
    ),
    "cycles halved": (
        "planned",
        set_to("totals", "predicted_cycles", value=lambda n: n // 2),
        "at the least",
    ),
    "parameters left out": ("planned", without_parameters, "has weight_bytes 0, the model's"),
    "a FIFO of one byte": ("groups", a_fifo_of_one_byte, "has 1 fifo_bytes; its buffers take"),
    "a tensor of one byte in a FIFO": ("groups", one_fifo_of_one_byte, "has not the model's shape"),
    "options of another scratchpad": (
        "spills",
        set_to("options", "scratchpad_bytes", value=9999),
        "options.scratchpad_bytes is 9999, the plan's",
    ),
    "a band that reads too little": ("bands", band_without_a_halo, "of which it needs rows"),
    "a cheaper model": ("bands", fewer_macs, "has .* macs, .* rows of the model's"),
    "a tensor that is half as large": ("spills", half_a_tensor, "has not the model's shape"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_forged_plan_is_refused(name):
    case, forge, reason = REFUSED[name]
    plan, model = CASES[case]
    problems = check(forge(copy.deepcopy(plan)), model=model)
    assert any(re.search(reason, problem) for problem in problems), problems
    assert not any("\n" in problem for problem in problems)


def rows_of(plan, **options):
    return {row.figure: row for row in evidence(Plan.model_validate(plan), **options)}


def test_a_certificate_forged_throughout_is_only_claimed():
    plan, model = CASES["spills"]
    forged = raised(copy.deepcopy(plan), status="optimal", bound=True)
    assert check(forged, model=model) == []
    rows = rows_of(forged, model="chain")
    for figure in ("claim", "bound of all orders"):
        assert "the rest claimed by annealing, not rechecked" in rows[figure].basis
    assert rows_of(plan, model="chain")["claim"].basis.startswith("recomputed")


def test_without_a_model_the_graph_is_only_claimed():
    plan, _ = CASES["planned"]
    forged = without_parameters(copy.deepcopy(plan))
    assert check(forged) == []
    rows = rows_of(forged)
    assert rows["graph"].claimed
    assert rows["parameter_bytes"].claimed
    assert not rows["avoidable_bytes"].claimed


def test_a_key_that_is_there_twice_is_refused(tmp_path):
    plan, _ = CASES["spills"]
    path = tmp_path / "plan.json"
    text = json.dumps(plan)
    path.write_text(text.replace('"memory_bytes"', '"memory_bytes": 0, "memory_bytes"'))
    with pytest.raises(InputError, match=r"plan\.json: key must be given once, not 'memory_bytes'"):
        check_file(path)
    path.write_text(text.replace(f'"memory_bytes": {plan["memory_bytes"]}', '"memory_bytes": NaN'))
    with pytest.raises(InputError, match="value must be a finite number, not 'NaN'"):
        check_file(path)
    path.write_text(text)
    assert check_file(path) == []
