"""Every field of a plan, changed in every simple way: refused, or shown as only claimed, or harmless.

Harmless is what `HARMLESS` gives the reason of, and nothing else.
"""

import copy
import itertools
import random

import pytest

from hw.scheduler.check.check import check
from hw.scheduler.check.evidence import evidence
from hw.scheduler.check.form import Plan
from tests.hw.scheduler.check.plans import CASES, at

#: Places that are tried for each kind of change to a field; the soak tries more.
PLACES, MORE_PLACES = 2, 12


def leaves(value, path=()):
    for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
        yield (*path, key)
        if isinstance(inner, dict | list):
            yield from leaves(inner, (*path, key))


def pattern(path):
    """Return the field of a path: names of tensors and places in lists are left out."""
    named = ("homes", "accesses")
    return ".".join(
        "*" if isinstance(key, int) or (before in named) else key
        for before, key in zip(("", *path), path, strict=False)
    )


FIELDS = {}
for name, (plan, _) in CASES.items():
    for path in leaves(plan):
        FIELDS.setdefault(pattern(path), []).append((name, path))

NUMBERS = {
    "+1": lambda value: value + 1,
    "-1": lambda value: value - 1,
    "+a word": lambda value: value + 32,
    "doubled": lambda value: 2 * value,
    "halved": lambda value: value // 2,
    "zero": lambda value: 0,
}
OTHERS = {
    "read": "write", "write": "read", "sequential": "pipelined", "pipelined": "sequential",
    "input": "weight", "activation": "output", "output": "activation", "auto": "never",
    "optimal": "feasible", "feasible": "optimal", "heuristic": "optimal", "free": "default",
}  # fmt: skip
TEXTS = {
    "another": lambda value: OTHERS.get(value, f"{value}x"),
    "empty": lambda value: "",
}
LISTS = {
    "one less": lambda value: value[:-1],
    "one twice": lambda value: [*value, *value[-1:]],
    "turned": lambda value: value[::-1],
}
MAPPINGS = {"one less": lambda value: dict(list(value.items())[1:])}


def changes(value):
    if isinstance(value, bool) or value is None:
        return {"turned": lambda value: 0 if value is None else not value}
    kinds = ((int, NUMBERS), (float, NUMBERS), (str, TEXTS), (list, LISTS), (dict, MAPPINGS))
    return next(found for kind, found in kinds if isinstance(value, kind))


#: Field and changes that may leave a right plan, and why that does no harm.
HARMLESS = {
    "episodes.*.first_step": "it may begin a step early, or be fetched later, where its place is free",
    "episodes.*.last_step": "it may stay a step longer than needed where its place is free",
    "episodes.*.address": "another free place is as good, where no transfer says the address",
    "fifos.*.address": "another free place is as good",
    "streams.*.window_bytes": "a wider window where there is room for it",
    "transfers.*.start_step": "it may begin at any time for which its place is its own",
    "transfers.*.deadline_step": "it may end at any time before the use",
    "transfers": "queues keep their order; reads and writes are listed apart or mixed",
    "graph.tensors": "the order of the list has no meaning",
    "graph.operators": "the order of the list has no meaning where the steps are searched for",
    "graph.operators.*.inputs": "the order of operands matters to streams alone",
    "graph.operators.*.members.*.inputs": "the order of operands matters to streams alone",
    "graph.operators.*.accesses": "what has no access is needed whole: only a larger window would do",
    "graph.operators.*.members.*.accesses": "what has no access is needed whole",
    "episodes": "transfers point into the list, and the order of what they do not has no meaning",
    "fifos": "the order of the list has no meaning",
    "graph.name": "a name: what the graph is, is compared with the model",
    "graph.made_by": "a name: what the graph is, is compared with the model",
    "certificate.stages": "with a stage less, less is claimed",
    "certificate.stages.*": "with a stage less, less is claimed",
    "options.macs_per_cycle": "one more or less leaves the cycles of small operators as they are",
    "streams": "transfers point into the list, and the order of what is alike has no meaning",
    "homes": "the order of the mapping has no meaning",
    **{
        f"graph.operators.*.{members}accesses.*.{key}": "more rows than are needed only make buffers larger, "
        "and of one output row it does not matter how far the next one moves"
        for members, key in itertools.product(
            ("", "members.*."), ("kernel", "pad", "stride", "up", "axis", "output_axis")
        )
    },
    **{
        f"graph.operators.*.{members}accesses.*": "what is left out has its default"
        for members in ("", "members.*.")
    },
}
#: Whole tensors are read up to the last row: no change to fewer rows may be harmless there.
TIGHT = {("kernel", "-1"), ("kernel", "halved"), ("kernel", "zero")}
UNCUT = ("spills", "windows", "groups")


def free(plan, episode):
    """Say whether an episode has its place to itself, and no transfer says the address."""
    moved = plan["episodes"][episode]
    first, last = moved["first_step"], moved["last_step"]
    others = [
        (other["address"], other["size_bytes"])
        for number, other in enumerate(plan["episodes"])
        if number != episode and other["first_step"] <= last and first <= other["last_step"]
    ]
    others += [
        (stream["address"], stream["window_bytes"])
        for stream in plan["streams"]
        if first <= stream["step"] <= last
    ]
    low, high = moved["address"], moved["address"] + moved["size_bytes"]
    return (
        low >= 0
        and high <= plan["scratchpad_bytes"]
        and all(high <= address or address + size <= low for address, size in others)
        and all(transfer["episode"] != episode for transfer in plan["transfers"])
    )


def verdict(document, corrupted, model):
    """Say whether a change is refused, shown as claimed, or unseen."""
    if check(corrupted, model=model):
        return "refused"
    before, after = (set(evidence(Plan.model_validate(each), model="m")) for each in (document, corrupted))
    return "claimed" if any(row.claimed for row in after - before) else "unseen"


@pytest.mark.parametrize("case", CASES)
def test_the_plans_are_right_and_are_of_their_models(case):
    plan, model = CASES[case]
    assert check(plan, model=model) == []
    kinds = {"windows": "streams", "groups": "fifos", "bands and groups": "fifos", "planned": "streams"}
    if case in kinds:
        assert plan[kinds[case]]
    assert ("bands" in case) == any(tensor["origin"] for tensor in plan["graph"]["tensors"])
    assert plan["totals"]["avoidable_bytes"] > 0


@pytest.mark.sample(23)
@pytest.mark.parametrize("places", [PLACES, pytest.param(MORE_PLACES, marks=pytest.mark.soak)])
@pytest.mark.parametrize("field", sorted(FIELDS))
def test_no_field_can_be_changed_unseen(field, places):
    rng = random.Random(f"{field} {places}")
    tried = 0
    for case, path in rng.sample(FIELDS[field], min(places, len(FIELDS[field]))):
        plan, model = CASES[case]
        for label, change in changes(at(plan, path)).items():
            corrupted = copy.deepcopy(plan)
            at(corrupted, path[:-1])[path[-1]] = change(at(corrupted, path))
            if corrupted == plan:
                continue
            tried += 1
            seen = verdict(plan, corrupted, model)
            tight = case in UNCUT and (path[-1], label) in TIGHT
            allowed = field in HARMLESS and not tight
            assert seen != "unseen" or allowed, (case, path, label, at(corrupted, path))
            if seen == "unseen" and field == "episodes.*.address":
                assert free(corrupted, path[1]), (case, path, label)
        # A part that is left out has its default, or the plan is no plan.
        left_out = copy.deepcopy(plan)
        del at(left_out, path[:-1])[path[-1]]
        if verdict(plan, left_out, model) == "unseen" and field not in HARMLESS:
            assert at(Plan.model_validate(left_out).model_dump(), path) == at(plan, path)
        tried += 1
    assert tried


def test_there_are_enough_fields():
    assert len(FIELDS) > 100
