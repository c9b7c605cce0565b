"""Corruptions of a plan.json's transfers, totals and claims, each with the checker's reason."""

from tests.hw.scheduler.check.corrupting import NotHere, change, pick, reads, remove, streaming, whole, writes


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


def half_fifo(plan, rng):
    pick(rng, plan["fifos"])["size_bytes"] //= 2


def fifo_elsewhere(plan, rng):
    pick(rng, plan["fifos"])["step"] = len(plan["steps"]) - 1


#: By name: the corruption, and the reason of its refusal.
TRANSFER_CORRUPTIONS = {
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
    "parameter bytes miscounted": (wrong_total("parameter_bytes", 32), r"totals\.parameter_bytes"),
    "peak miscounted": (wrong_total("peak_bytes", -32), r"totals\.peak_bytes"),
    "transfers miscounted": (wrong_total("transfers_total", 1), r"totals\.transfers_total"),
    "fewer cycles than the steps take": (
        change(("totals", "predicted_cycles"), lambda _: -1),
        "the plan takes .* at the least",
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
        "has bound 9, its objective 8",
    ),
}
