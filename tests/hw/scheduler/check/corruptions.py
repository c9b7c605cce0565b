"""Corruptions of a plan.json's form, graph, steps and places, each with the checker's reason."""

from tests.hw.scheduler.check.corrupting import NotHere, change, makers, pick, renumber


def swap_dependent_steps(plan, rng):
    by_name = {operator["name"]: operator for operator in plan["graph"]["operators"]}
    steps = plan["steps"]
    later = pick(
        rng,
        range(1, len(steps)),
        lambda s: (
            set(by_name[steps[s]["operator"]]["inputs"]) & set(by_name[steps[s - 1]["operator"]]["outputs"])
        ),
    )
    steps[later - 1], steps[later] = steps[later], steps[later - 1]


def step_missing(plan, rng):
    by_name = {operator["name"]: operator for operator in plan["graph"]["operators"]}
    kinds = {tensor["name"]: tensor["kind"] for tensor in plan["graph"]["tensors"]}

    def ends(step):
        return all(kinds[name] == "output" for name in by_name[step["operator"]]["outputs"])

    plan["steps"].remove(pick(rng, plan["steps"], ends))


def overlapping_pair(plan, rng):
    """Choose two episodes that share a step."""
    return pick(
        rng,
        [(a, b) for a in plan["episodes"] for b in plan["episodes"]],
        lambda pair: (
            pair[0] is not pair[1]
            and pair[0]["first_step"] <= pair[1]["last_step"]
            and pair[1]["first_step"] <= pair[0]["last_step"]
            and pair[1]["address"] + pair[0]["size_bytes"] <= plan["scratchpad_bytes"]
        ),
    )


def episode_onto_another(plan, rng):
    one, other = overlapping_pair(plan, rng)
    index = plan["episodes"].index(one)
    one["address"] = other["address"]
    for transfer in plan["transfers"]:
        if transfer["episode"] == index:
            transfer["scratchpad_address"] = one["address"]


def episode_elsewhere(plan, rng):
    episode = overlapping_pair(plan, rng)[0]
    index = plan["episodes"].index(episode)
    pick(rng, plan["transfers"], lambda transfer: transfer["episode"] == index)
    word = plan["word_bytes"]
    room = (plan["scratchpad_bytes"] - episode["size_bytes"]) // word
    episode["address"] = pick(rng, range(room + 1), lambda place: place * word != episode["address"]) * word


def longer_onto_next(plan, rng):
    """Let an episode stay one step longer, over one that begins there at its place."""
    one, _ = pick(
        rng,
        [(a, b) for a in plan["episodes"] for b in plan["episodes"]],
        lambda pair: (
            pair[1]["first_step"] == pair[0]["last_step"] + 1
            and pair[0]["tensor"] != pair[1]["tensor"]
            and pair[0]["address"] < pair[1]["address"] + pair[1]["size_bytes"]
            and pair[1]["address"] < pair[0]["address"] + pair[0]["size_bytes"]
        ),
    )
    one["last_step"] += 1


def shorter(plan, rng):
    """End an episode before its last use."""
    pick(rng, plan["episodes"], lambda e: e["last_step"] > e["first_step"])["last_step"] -= 1


def begins_late(plan, rng):
    pick(rng, plan["episodes"], lambda e: e["last_step"] > e["first_step"])["first_step"] += 1


def begins_before_written(plan, rng):
    made = makers(plan)
    pick(rng, plan["episodes"], lambda e: 0 < made.get(e["tensor"], -1) == e["first_step"])["first_step"] -= 1


def episode_missing(plan, rng):
    moved = {transfer["episode"] for transfer in plan["transfers"]}
    index = pick(rng, range(len(plan["episodes"])), lambda number: number not in moved)
    del plan["episodes"][index]
    renumber(plan, "episode", index)


def episode_twice(plan, rng):
    episode = pick(rng, plan["episodes"])
    plan["episodes"].append(dict(episode))


def unused_episode(plan, rng):
    last = len(plan["steps"]) - 1
    unused = pick(rng, plan["episodes"], lambda e: e["last_step"] < last)
    used = {name for op in plan["graph"]["operators"] if op["name"] == plan["steps"][last]["operator"]
            for name in (*op["inputs"], *op["outputs"])}  # fmt: skip
    if unused["tensor"] in used:
        raise NotHere
    plan["episodes"].append(dict(unused, first_step=last, last_step=last))


def below_zero(plan, rng):
    pick(rng, plan["episodes"])["address"] = -plan["word_bytes"]


def beyond_the_end(plan, rng):
    episode = pick(rng, plan["episodes"])
    words = (plan["scratchpad_bytes"] - episode["size_bytes"]) // plan["word_bytes"] + 1
    episode["address"] = words * plan["word_bytes"]


def smaller_scratchpad(plan, rng):
    top = max(episode["address"] + episode["size_bytes"] for episode in plan["episodes"])
    plan["scratchpad_bytes"] = top - 1


def misaligned(plan, rng):
    pick(rng, plan["episodes"])["address"] += 1


def tensor_grows(plan, rng):
    tensor = pick(rng, plan["graph"]["tensors"], lambda t: not t["shape"])
    tensor["size_bytes"] += plan["word_bytes"]


def shape_grows(plan, rng):
    pick(rng, plan["graph"]["tensors"], lambda t: t["shape"])["shape"][0] += 1


def member_changed(plan, rng):
    group = pick(rng, plan["graph"]["operators"], lambda operator: operator["members"])
    member = pick(rng, group["members"])
    member["inputs"] = [*member["inputs"], "y"]


def group_of(plan, rng):
    return pick(rng, plan["graph"]["operators"], lambda operator: operator["members"])


def group_without_buffers(plan, rng):
    """Claim that the tensor between two members takes no room, and leave its buffer out."""
    group_of(plan, rng)["fifo_bytes"] = 0
    plan["fifos"] = []


def inner_needed_whole(plan, rng):
    group = group_of(plan, rng)
    for member in group["members"]:
        for tensor in group["inner"]:
            member["accesses"].pop(tensor["name"], None)


def inner_read_twice(plan, rng):
    group = group_of(plan, rng)
    last = group["members"][-1]
    second = dict(last, name="again", macs=0, weight_bytes=0, outputs=["again"])
    group["members"].append(second)
    group["inner"].append(dict(group["inner"][0], name="again"))


def group_with_fewer_parameters(plan, rng):
    group_of(plan, rng)["members"][0]["weight_bytes"] += 64


def group_with_a_narrow_access(plan, rng):
    """Name fewer rows than the two kernels reach over one behind the other."""
    group = group_of(plan, rng)
    access = pick(rng, list(group["accesses"].values()), lambda access: access["kernel"] > 1)
    access["kernel"] -= 1


def group_in_the_time_of_one(plan, rng):
    """Leave no multiplier for a member that has next to nothing to do."""
    group = group_of(plan, rng)
    step = next(step for step in plan["steps"] if step["operator"] == group["name"])
    first, last = group["members"]
    group["macs"] = step["compute_cycles"] * plan["options"]["macs_per_cycle"]
    first["macs"], last["macs"] = 1, group["macs"] - 1


def forget(plan, rng):
    del plan[pick(rng, sorted(plan), lambda part: part != "options")]


def too_fast(plan, rng):
    pick(rng, plan["steps"], lambda step: step["compute_cycles"])["compute_cycles"] -= 1


def unknown_operator(plan, rng):
    pick(rng, plan["steps"])["operator"] = "nobody"


def mode_turned(plan, rng):
    step = pick(rng, plan["steps"])
    step["mode"] = {"sequential": "pipelined", "pipelined": "sequential"}[step["mode"]]


def two_producers(plan, rng):
    operators = plan["graph"]["operators"]
    if len(operators) < 2:
        raise NotHere
    one, other = rng.sample(operators, 2)
    one["outputs"] = [*one["outputs"], other["outputs"][0]]


def negative_size(plan, rng):
    pick(rng, plan["graph"]["tensors"])["size_bytes"] = -64


def operands(change_operands):
    """Change the operands of an operator."""

    def corrupt(plan, rng):
        change_operands(pick(rng, plan["graph"]["operators"]))

    return corrupt


def tensors(add):
    """Declare another tensor."""

    def corrupt(plan, rng):
        plan["graph"]["tensors"].append(add(pick(rng, plan["graph"]["tensors"])))

    return corrupt


def accesses(key, value):
    """Set a part of an access between two tensors of known shape."""

    def corrupt(plan, rng):
        shapes = {tensor["name"]: tensor["shape"] for tensor in plan["graph"]["tensors"]}
        found = [
            operator["accesses"][name]
            for operator in plan["graph"]["operators"]
            for name in operator["accesses"]
            if shapes[name] and shapes[operator["outputs"][0]] and not operator["members"]
        ]
        pick(rng, found)[key] = value

    return corrupt


#: By name: the corruption, and the reason of its refusal.
CORRUPTIONS = {
    "format of another version": (change(("format",), lambda _: "loomwork-plan/9"), "plan: format must be"),
    "part missing": (forget, "must be given"),
    "unknown key": (lambda plan, rng: plan.update(colour="red"), "key must be one of .* not 'colour'"),
    "step that is no number": (change(("episodes", "first_step"), lambda _: "0"), "must be a whole number"),
    "step that is a fraction": (change(("episodes", "last_step"), float), "must be a whole number"),
    "tensor of negative size": (negative_size, "size_bytes must be greater than or equal to 1, not -64"),
    "tensor larger than its place": (tensor_grows, r"has \d+ bytes, the tensor"),
    "shape that is not its size": (shape_grows, "its shape makes"),
    "two tensors of one name": (tensors(dict), "graph has 2 tensors named"),
    "tensor nobody reads": (
        tensors(lambda old: {**old, "name": "q", "kind": "input"}),
        "is read by no operator",
    ),
    "operand nobody declares": (operands(lambda o: o["inputs"].append("q")), "names the unknown tensor 'q'"),
    "operand named twice": (operands(lambda o: o["inputs"].append(o["inputs"][0])), "names '.*' twice"),
    "access to no operand": (operands(lambda o: o["accesses"].update(q={})), "has an access to 'q', not an"),
    "access along no dimension": (accesses("axis", 2), "by axis 2, but '.*' has no such dimension"),
    "access along no dimension of the output": (accesses("output_axis", 9), "by output_axis 9, but"),
    "access to more rows than there are": (accesses("kernel", 10**6), "by a kernel of 1000000 rows"),
    "stage of no name": (change(("certificate", "stages", "stage"), lambda _: ""), "stage must be .* not ''"),
    "two producers": (two_producers, "is written by 2 operators"),
    "word that is no power of two": (change(("word_bytes",), lambda word: word + 1), "not a power of two"),
    "consumer before producer": (swap_dependent_steps, "before it is written"),
    "step missing": (step_missing, "runs 0 times"),
    "step twice": (lambda plan, rng: plan["steps"].append(pick(rng, plan["steps"])), "runs 2 times"),
    "unknown operator": (unknown_operator, "unknown operator 'nobody'"),
    "step faster than its arithmetic": (too_fast, "its operator takes"),
    "group that names too few rows": (group_with_a_narrow_access, "its members need"),
    "group faster than its members on their shares": (group_in_the_time_of_one, "its operator takes more"),
    "mode of another kind of step": (mode_turned, r"is (pipelined|sequential), with"),
    "group that is not its members": (member_changed, "disagree on reading 'y'"),
    "group without its buffers": (group_without_buffers, "fifo_bytes; its buffers take"),
    "group that hands on what is needed whole": (inner_needed_whole, "which its reader needs whole"),
    "group that hands a tensor on to two": (inner_read_twice, "on to 2 members, not one"),
    "group with fewer parameters than its members": (group_with_fewer_parameters, "has other weight_bytes"),
    "episode missing": (episode_missing, "is nowhere in the scratchpad"),
    "episode twice": (episode_twice, "is there 2 times"),
    "episode nobody uses": (unused_episode, "is touched by no operator"),
    "episode that ends early": (shorter, "is nowhere in the scratchpad"),
    "episode that begins late": (begins_late, "is nowhere in the scratchpad"),
    "episode that begins before the tensor is written": (begins_before_written, "begins in step"),
    "episode longer than its place is free": (longer_onto_next, r"overlap in steps"),
    "episode moved with its transfers onto another": (episode_onto_another, r"overlap in steps .*bytes"),
    "episode at another address": (episode_elsewhere, r"overlap in steps|has scratchpad_address"),
    "episode below the scratchpad": (below_zero, "are outside of"),
    "episode beyond the scratchpad": (beyond_the_end, "are outside of"),
    "scratchpad too small": (smaller_scratchpad, "are outside of"),
    "episode between words": (misaligned, "not whole words"),
}
