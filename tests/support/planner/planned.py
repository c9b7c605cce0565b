"""Plans for tests out of a residency and addresses, and graphs to make them of."""

import random

from hw.scheduler.graph.graph import Access, Graph, Operator, Tensor, TensorKind
from hw.scheduler.plan.array import compute_cycles
from hw.scheduler.plan.plan import Certificate, Direction, Mode, Plan, PlanStep, StageCertificate, Totals
from hw.scheduler.planner.residency.stays import Residency, Stay, StreamUse, events_of, measure, steps_of
from hw.scheduler.planner.transfers.transfers import blocks_of, make_transfers
from tests.support.planner.naive_plan import serial_cycles

MACS_PER_CYCLE = 64


def first_fit(shapes):
    """Addresses without a limit, and their height."""
    placed = []
    for shape in shapes:
        low = 0
        for other, start in sorted(placed, key=lambda entry: entry[1]):
            if other.first <= shape.last and shape.first <= other.last and start < low + shape.size:
                low = max(low, start + other.size)
        placed.append((shape, low))
    return tuple(low for _, low in placed), max(low + shape.size for shape, low in placed)


def plan_of(problem, order, residency, *, step_cycles=None, addresses=None):
    """The whole plan; its cycles are those of one word after the other."""
    height = 0
    if addresses is None:
        addresses, height = first_fit(blocks_of(problem, order, residency))
    moved = make_transfers(problem, order, residency, addresses, step_cycles=step_cycles)
    word = problem.word_bytes
    used = [0] * len(order)
    for episode in moved.episodes:
        height = max(height, (episode.address + episode.size_bytes) // word)
        for step in range(episode.first_step, episode.last_step + 1):
            used[step] += episode.size_bytes
    for stream in moved.streams:
        used[stream.step] += stream.window_bytes
    for fifo in moved.fifos:
        used[fifo.step] += fifo.size_bytes
    words = dict.fromkeys(Direction, 0)
    for transfer in moved.transfers:
        words[transfer.direction] += transfer.size_bytes
    operators = [problem.graph.operators[index] for index in order]
    cycles = [compute_cycles(operator, MACS_PER_CYCLE) for operator in operators]
    compulsory = problem.compulsory * word
    avoidable = words[Direction.READ] + words[Direction.WRITE] - compulsory
    steps = tuple(
        PlanStep(
            operator=operator.name,
            mode=Mode.PIPELINED if operator.members else Mode.SEQUENTIAL,
            compute_cycles=least,
        )
        for operator, least in zip(operators, cycles, strict=True)
    )
    return Plan(
        graph=problem.graph,
        scratchpad_bytes=height * word,
        word_bytes=word,
        steps=steps,
        episodes=moved.episodes,
        streams=moved.streams,
        fifos=moved.fifos,
        transfers=moved.transfers,
        homes=moved.homes,
        memory_bytes=sum(
            problem.size[index] * word
            for index, tensor in enumerate(problem.graph.tensors)
            if tensor.name in moved.homes
        ),
        totals=Totals(
            offchip_read_bytes=words[Direction.READ],
            offchip_write_bytes=words[Direction.WRITE],
            compulsory_bytes=compulsory,
            avoidable_bytes=avoidable,
            parameter_bytes=sum(operator.weight_bytes for operator in problem.graph.operators),
            peak_bytes=max(used),
            transfers_total=len(moved.transfers),
            predicted_cycles=serial_cycles(problem, steps) + sum(words.values()) // word,
            exposed_cycles=0,
        ),
        certificate=Certificate(
            claim="bound 0 bytes, not proven",
            bound_avoidable_bytes=0,
            order_bound_avoidable_bytes=0,
            stages=(
                StageCertificate(
                    stage="residency", solver="test", status="heuristic", objective=avoidable, bound=0
                ),
            ),
        ),
        options={"scratchpad_bytes": height * word, "word_bytes": word, "macs_per_cycle": MACS_PER_CYCLE},
    )


def residency_of(problem, order, stays, streams=()):
    """A residency without a solver."""
    measured = measure(problem, order, stays, streams)
    return Residency(
        order=tuple(order), stays=tuple(stays), streams=tuple(streams),
        avoidable_words=measured.avoidable_words, bound_words=0, peak_words=measured.peak_words,
        transfers=measured.transfers, status="feasible", solver="by hand",
    )  # fmt: skip


def random_residency(problem, order, seed, *, kept=0.6, streamed=0.5):
    """Gaps kept at random; uses without a kept gap beside them stream at random."""
    rng = random.Random(seed)
    steps = steps_of(problem, order)
    stays, streams = [], []
    crowded = set()  # steps that stream already, or stream something that streams alone
    for tensor in range(problem.tensor_count):
        runs = []
        for event in events_of(problem, steps, tensor):
            if runs and rng.random() < kept:
                runs[-1].append(event)
            else:
                runs.append([event])
        for run in runs:
            step = run[0]
            alone = problem.streams_alone(order[step], tensor)
            others = [stream for stream in streams if stream.step == step]
            free = step not in crowded and not (alone and others)
            if len(run) == 1 and free and rng.random() < streamed:
                makes = tensor in problem.outputs[order[step]]
                direction = Direction.WRITE if makes else Direction.READ
                streams.append(StreamUse(tensor=tensor, step=step, direction=direction))
                if alone:
                    crowded.add(step)
            else:
                stays.append(Stay(tensor=tensor, first_step=step, last_step=run[-1]))
    return residency_of(problem, order, sorted(stays), sorted(streams))


def random_graph(seed, operators=12):
    """A graph of rows: convolutions and sums of several inputs, a few weights, some operands needed whole."""
    rng = random.Random(seed)
    rows, tensors, made = 8, [], []

    def tensor(name, kind):
        width = rng.randint(1, 12) * 16
        tensors.append(Tensor(name=name, size_bytes=rows * width, shape=(rows, width), kind=kind))
        return name

    made.append(tensor("in", TensorKind.INPUT))
    found = []
    for number in range(operators):
        inputs = rng.sample(made, min(len(made), rng.choice((1, 1, 2, 3))))
        accesses = {}
        for name in inputs:
            if rng.random() < 0.8:
                kernel = rng.choice((1, 3))
                accesses[name] = Access(kernel=kernel, pad=kernel // 2)
        if rng.random() < 0.3:
            inputs.append(tensor(f"w{number}", TensorKind.WEIGHT))
        outputs = [tensor(f"t{number}", TensorKind.ACTIVATION)]
        made += outputs
        found.append(
            Operator(
                name=f"o{number}", kind="conv", inputs=tuple(inputs), outputs=tuple(outputs),
                accesses=accesses, macs=rng.randint(0, 20_000),
            )
        )  # fmt: skip
    used = {name for operator in found for name in operator.inputs}
    tensors = [
        Tensor(name=old.name, size_bytes=old.size_bytes, shape=old.shape, kind=TensorKind.OUTPUT)
        if old.kind is TensorKind.ACTIVATION and old.name not in used
        else old
        for old in tensors
        if old.name != "in" or "in" in used
    ]
    return Graph(name=f"random{seed}", tensors=tuple(tensors), operators=tuple(found))
