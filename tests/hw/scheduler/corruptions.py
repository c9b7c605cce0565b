"""Ways to make a plan.json wrong, each with the reason a checker must give."""

import re


class NotHere(Exception):
    """The plan has nothing of the kind to corrupt."""


def pick(rng, entries, condition=lambda entry: True):
    found = [entry for entry in entries if condition(entry)]
    if not found:
        raise NotHere
    return rng.choice(found)


def writes(transfer):
    return transfer["direction"] == "write"


def reads(transfer):
    return transfer["direction"] == "read"


def whole(transfer):
    return transfer["stream"] is None


def streaming(transfer):
    return transfer["stream"] is not None


def makers(plan):
    by_name = {operator["name"]: operator for operator in plan["graph"]["operators"]}
    steps = [by_name[step["operator"]] for step in plan["steps"]]
    return {name: step for step, operator in enumerate(steps) for name in operator["outputs"]}


def change(path, by):
    """Give a corruption that changes a number of the document by a function of it."""

    def corrupt(plan, rng):
        *outer, key = path
        place = plan
        for part in outer:
            place = pick(rng, place[part]) if part in LISTS else place[part]
        place[key] = by(place[key])

    return corrupt


LISTS = ("steps", "episodes", "streams", "fifos", "transfers", "stages")


def remove(kind, condition=lambda entry: True):
    def corrupt(plan, rng):
        plan[kind].remove(pick(rng, plan[kind], condition))

    return corrupt


def renumber(plan, kind, index):
    """Let no transfer point past a removed entry."""
    for transfer in plan["transfers"]:
        if transfer[kind] is not None and transfer[kind] > index:
            transfer[kind] -= 1


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


def read_before_write(plan, rng):
    """Fetch a spilled tensor while it is still being saved."""
    saved = {t["tensor"]: t for t in plan["transfers"] if writes(t) and whole(t)}
    read = pick(rng, plan["transfers"], lambda t: reads(t) and whole(t) and t["tensor"] in saved)
    early = saved[read["tensor"]]["deadline_step"] - 1
    plan["episodes"][read["episode"]]["first_step"] = read["start_step"] = early


def late_write(plan, rng):
    pick(rng, plan["transfers"], lambda t: writes(t) and whole(t))["deadline_step"] += 1


def early_write(plan, rng):
    pick(rng, plan["transfers"], lambda t: writes(t) and whole(t))["start_step"] -= 1


def early_read(plan, rng):
    pick(rng, plan["transfers"], lambda t: reads(t) and whole(t))["start_step"] -= 1


def late_read(plan, rng):
    read = pick(rng, plan["transfers"], lambda t: reads(t) and whole(t))
    read["deadline_step"] += 1


def stream_late(plan, rng):
    pick(rng, plan["transfers"], streaming)["deadline_step"] += 1


def write_twice(plan, rng):
    write = pick(rng, plan["transfers"], lambda t: writes(t) and whole(t))
    plan["transfers"].insert(plan["transfers"].index(write), dict(write))


def read_twice(plan, rng):
    read = pick(rng, plan["transfers"], lambda t: reads(t) and whole(t))
    plan["transfers"].insert(plan["transfers"].index(read), dict(read))


def output_never_written(plan, rng):
    kinds = {tensor["name"]: tensor["kind"] for tensor in plan["graph"]["tensors"]}
    read = {t["tensor"] for t in plan["transfers"] if reads(t)}
    write = pick(
        rng,
        plan["transfers"],
        lambda t: writes(t) and whole(t) and kinds[t["tensor"]] == "output" and t["tensor"] not in read,
    )
    plan["transfers"].remove(write)
    del plan["homes"][write["tensor"]]
    plan["memory_bytes"] = max(
        (plan["homes"][t["tensor"]] + t["size_bytes"] for t in plan["transfers"]), default=0
    )


def write_missing(plan, rng):
    read = {t["tensor"] for t in plan["transfers"] if reads(t)}
    plan["transfers"].remove(
        pick(rng, plan["transfers"], lambda t: writes(t) and whole(t) and t["tensor"] in read)
    )


def source_written(plan, rng):
    kinds = {tensor["name"]: tensor["kind"] for tensor in plan["graph"]["tensors"]}
    read = pick(
        rng, plan["transfers"], lambda t: reads(t) and whole(t) and kinds[t["tensor"]] in ("input", "weight")
    )
    last = plan["episodes"][read["episode"]]["last_step"]
    plan["transfers"].append(dict(read, direction="write", start_step=last, deadline_step=last + 1))


def one_home(plan, rng):
    if len(plan["homes"]) < 2:
        raise NotHere
    one, other = rng.sample(sorted(plan["homes"]), 2)
    plan["homes"][one] = plan["homes"][other]
    for transfer in plan["transfers"]:
        if transfer["tensor"] == one:
            transfer["dram_address"] = plan["homes"][other]
    sizes = {t["tensor"]: t["size_bytes"] for t in plan["transfers"]}
    plan["memory_bytes"] = max(plan["homes"][name] + sizes[name] for name in plan["homes"])


def home_of_one_transfer(plan, rng):
    pick(rng, plan["transfers"])["dram_address"] += plan["word_bytes"]


def home_missing(plan, rng):
    del plan["homes"][pick(rng, sorted(plan["homes"]))]


def home_too_many(plan, rng):
    moved = {transfer["tensor"] for transfer in plan["transfers"]}
    tensor = pick(rng, plan["graph"]["tensors"], lambda t: t["name"] not in moved)
    plan["homes"][tensor["name"]] = plan["memory_bytes"]


def home_misaligned(plan, rng):
    name = pick(rng, sorted(plan["homes"]))
    plan["homes"][name] += 1
    for transfer in plan["transfers"]:
        if transfer["tensor"] == name:
            transfer["dram_address"] += 1


def wrong_place(direction):
    def corrupt(plan, rng):
        transfer = pick(rng, plan["transfers"], lambda t: whole(t) and t["direction"] == direction)
        word = plan["word_bytes"]
        transfer["scratchpad_address"] += word if transfer["scratchpad_address"] == 0 else -word

    return corrupt


def other_episode(plan, rng):
    transfer = pick(rng, plan["transfers"], whole)
    transfer["episode"] = pick(
        rng,
        range(len(plan["episodes"])),
        lambda number: plan["episodes"][number]["tensor"] != transfer["tensor"],
    )


def both_targets(plan, rng):
    transfer = pick(rng, plan["transfers"])
    transfer["episode"], transfer["stream"] = 0, 0


def queue_reversed(direction):
    """Let the last transfer of a queue go first."""

    def corrupt(plan, rng):
        queue = [t for t in plan["transfers"] if t["direction"] == direction]
        if not queue or queue[0]["start_step"] == queue[-1]["start_step"]:
            raise NotHere
        plan["transfers"].remove(queue[-1])
        plan["transfers"].insert(0, queue[-1])

    return corrupt


def stream_before_its_read(plan, rng):
    """Let a stream go before a whole read of its step, which would wait for the operator it holds up."""
    transfers = plan["transfers"]
    place = pick(
        rng,
        range(1, len(transfers)),
        lambda n: (
            reads(transfers[n])
            and streaming(transfers[n])
            and reads(transfers[n - 1])
            and whole(transfers[n - 1])
            and transfers[n - 1]["start_step"] == transfers[n]["start_step"]
        ),
    )
    transfers[place - 1], transfers[place] = transfers[place], transfers[place - 1]


def stream_after_spill(plan, rng):
    """Let a draining stream wait for a write that waits for the end of its step."""
    transfers = plan["transfers"]
    place = pick(
        rng,
        range(1, len(transfers)),
        lambda n: (
            all(map(writes, transfers[n - 1 : n + 1]))
            and streaming(transfers[n - 1])
            and whole(transfers[n])
            and transfers[n - 1]["start_step"] == transfers[n]["start_step"]
        ),
    )
    transfers[place - 1], transfers[place] = transfers[place], transfers[place - 1]


def streams_swapped(plan, rng):
    transfers = plan["transfers"]
    place = pick(
        rng,
        range(1, len(transfers)),
        lambda n: (
            streaming(transfers[n])
            and streaming(transfers[n - 1])
            and transfers[n]["direction"] == transfers[n - 1]["direction"]
            and transfers[n]["start_step"] == transfers[n - 1]["start_step"]
        ),
    )
    transfers[place - 1], transfers[place] = transfers[place], transfers[place - 1]


def narrow_window(plan, rng):
    stream = pick(rng, plan["streams"])
    stream["window_bytes"] -= plan["word_bytes"]


def stream_elsewhere(plan, rng):
    stream = pick(rng, plan["streams"])
    by_name = {operator["name"]: operator for operator in plan["graph"]["operators"]}
    steps = [by_name[step["operator"]] for step in plan["steps"]]
    stream["step"] = pick(
        rng,
        range(len(steps)),
        lambda s: stream["tensor"] not in (*steps[s]["inputs"], *steps[s]["outputs"]),
    )


def stream_onto_operand(plan, rng):
    stream, episode = pick(
        rng,
        [(s, e) for s in plan["streams"] for e in plan["episodes"]],
        lambda pair: (
            pair[1]["first_step"] <= pair[0]["step"] <= pair[1]["last_step"]
            and pair[1]["address"] + pair[0]["window_bytes"] <= plan["scratchpad_bytes"]
        ),
    )
    index = plan["streams"].index(stream)
    stream["address"] = episode["address"]
    for transfer in plan["transfers"]:
        if transfer["stream"] == index:
            transfer["scratchpad_address"] = episode["address"]


def stream_and_stay(plan, rng):
    """Let a streamed tensor lie in the scratchpad in the same step, too."""
    stream, episode = pick(
        rng,
        [(s, e) for s in plan["streams"] for e in plan["episodes"]],
        lambda pair: (
            pair[0]["direction"] == "read"
            and pair[0]["tensor"] == pair[1]["tensor"]
            and pair[1]["last_step"] < pair[0]["step"]
        ),
    )
    episode["last_step"] = stream["step"]


def stream_without_transfer(plan, rng):
    plan["transfers"].remove(pick(rng, plan["transfers"], streaming))


def wrong_total(name, by):
    return change(("totals", name), lambda value: value + by)


def claim_too_much(claim, bound):
    def corrupt(plan, rng):
        if not plan["totals"]["avoidable_bytes"]:
            raise NotHere
        plan["certificate"]["claim"] = claim
        plan["certificate"][bound] = plan["totals"]["avoidable_bytes"] - 1

    return corrupt


def bound_above_plan(plan, rng):
    for name in ("bound_avoidable_bytes", "order_bound_avoidable_bytes"):
        plan["certificate"][name] = plan["totals"]["avoidable_bytes"] + plan["word_bytes"]


def member_changed(plan, rng):
    group = pick(rng, plan["graph"]["operators"], lambda operator: operator["members"])
    member = pick(rng, group["members"])
    member["inputs"] = [*member["inputs"], "y"]


def half_fifo(plan, rng):
    pick(rng, plan["fifos"])["size_bytes"] //= 2


def fifo_elsewhere(plan, rng):
    pick(rng, plan["fifos"])["step"] = len(plan["steps"]) - 1


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


#: By name: what corrupts, and the reason it must be refused for.
CORRUPTIONS = {
    "format of another version": (change(("format",), lambda _: "loomwork-plan/9"), r"plan\.format is"),
    "part missing": (forget, r"plan has no '"),
    "unknown key": (lambda plan, rng: plan.update(colour="red"), "unknown key 'colour'"),
    "step that is no number": (change(("episodes", "first_step"), lambda _: "0"), "not a whole number"),
    "step that is a fraction": (change(("episodes", "last_step"), float), "not a whole number"),
    "tensor of negative size": (negative_size, "has -64 bytes"),
    "tensor larger than its place": (tensor_grows, r"has \d+ bytes, the tensor"),
    "shape that is not its size": (shape_grows, "its shape makes"),
    "two producers": (two_producers, "is written by 2 operators"),
    "word that is no power of two": (change(("word_bytes",), lambda word: word + 1), "not a power of two"),
    "consumer before producer": (swap_dependent_steps, "before it is written"),
    "step missing": (step_missing, "runs 0 times"),
    "step twice": (lambda plan, rng: plan["steps"].append(pick(rng, plan["steps"])), "runs 2 times"),
    "unknown operator": (unknown_operator, "unknown operator 'nobody'"),
    "step faster than its arithmetic": (too_fast, "its macs take"),
    "mode of another kind of step": (mode_turned, r"is (pipelined|sequential), with"),
    "group that is not its members": (member_changed, "disagree on reading 'y'"),
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
    "read missing": (
        remove("transfers", lambda t: reads(t) and whole(t)),
        "is read 0 times|which is never off chip",
    ),
    "read twice": (read_twice, "is read 2 times"),
    "write missing": (write_missing, "where it was never written"),
    "output never written": (output_never_written, "is never written to memory"),
    "write twice": (write_twice, "is saved 2 times"),
    "source written": (source_written, "writes what lies off chip from the start"),
    "read before the write is complete": (read_before_write, "has two episodes in step"),
    "write with a late deadline": (late_write, "after its episode ends"),
    "write before the tensor is made": (early_write, "not after it is written"),
    "read into a place not yet its own": (early_read, "before its episode"),
    "read with a late deadline": (late_read, "not in time for the use"),
    "stream with a late deadline": (stream_late, "has deadline_step"),
    "tensors with one home": (one_home, "homes of .* overlap"),
    "home moved for one transfer": (home_of_one_transfer, "has dram_address"),
    "home missing": (home_missing, "has no home"),
    "home of what is never off chip": (home_too_many, "which is never off chip"),
    "home between words": (home_misaligned, "not a whole number of words"),
    "memory of another size": (change(("memory_bytes",), lambda size: size + 32), "the homes end at"),
    "read into another place": (wrong_place("read"), "has scratchpad_address"),
    "write of another place": (wrong_place("write"), "has scratchpad_address"),
    "transfer cut short": (change(("transfers", "size_bytes"), lambda size: size - 1), "has size_bytes"),
    "transfer of another tensor's episode": (other_episode, "which is of"),
    "transfer of two targets": (both_targets, "of an episode and a stream, not one"),
    "read queue out of order": (queue_reversed("read"), "stands behind a transfer that starts"),
    "write queue out of order": (queue_reversed("write"), "stands behind a transfer that starts"),
    "stream before the read its step waits for": (stream_before_its_read, "but stands behind"),
    "stream behind a spill of its own step": (stream_after_spill, "but stands behind"),
    "streams in the wrong order": (streams_swapped, "stands behind"),
    "window too narrow": (narrow_window, "window of"),
    "stream in a step that has no use for it": (stream_elsewhere, "does not (use|make) the tensor"),
    "window over an operand": (stream_onto_operand, "overlap in steps"),
    "streamed and whole at once": (stream_and_stay, "is there 2 times"),
    "stream that nothing feeds": (stream_without_transfer, "has 0 transfers|which is never off chip"),
    "fifo too small": (half_fifo, "its group needs"),
    "fifo of no group": (fifo_elsewhere, "executes no group"),
    "bytes read miscounted": (wrong_total("offchip_read_bytes", 32), r"totals\.offchip_read_bytes"),
    "bytes written miscounted": (wrong_total("offchip_write_bytes", -32), r"totals\.offchip_write_bytes"),
    "compulsory bytes miscounted": (wrong_total("compulsory_bytes", 32), r"totals\.compulsory_bytes"),
    "avoidable bytes miscounted": (wrong_total("avoidable_bytes", 32), r"totals\.avoidable_bytes"),
    "peak miscounted": (wrong_total("peak_bytes", -32), r"totals\.peak_bytes"),
    "transfers miscounted": (wrong_total("transfers_total", 1), r"totals\.transfers_total"),
    "fewer cycles than the steps take": (
        change(("totals", "predicted_cycles"), lambda _: -1),
        "the steps take",
    ),
    "exposed cycles below zero": (change(("totals", "exposed_cycles"), lambda _: -1), "exposed_cycles is -1"),
    "claim of an optimum": (claim_too_much("optimal", "bound_avoidable_bytes"), "claims 'optimal'"),
    "claim of an optimum for the order": (
        claim_too_much("optimal for this order", "order_bound_avoidable_bytes"),
        "claims 'optimal for this order'",
    ),
    "claim of an unknown kind": (change(("certificate", "claim"), lambda _: "best"), "none of the known"),
    "claim of another bound": (
        change(("certificate", "claim"), lambda _: "bound 7 bytes, not proven"),
        "but the bound is",
    ),
    "bound above the plan": (bound_above_plan, "do not rise to"),
    "stage optimal without proof": (
        lambda plan, rng: plan["certificate"]["stages"][0].update(status="optimal", objective=9, bound=8),
        "is called optimal",
    ),
    "stage with a bound above its objective": (
        lambda plan, rng: plan["certificate"]["stages"][0].update(objective=8, bound=9),
        "above its objective",
    ),
}  # fmt: skip

assert all(re.compile(reason) for _, reason in CORRUPTIONS.values())
