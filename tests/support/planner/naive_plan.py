"""Valid plans without a planner: default order, first-fit, Belady's eviction, no transfer hidden.

For tests of the readers of plans.  The plans are correct, not good.
"""

from collections.abc import Collection
from dataclasses import dataclass, field

from hw.errors import InputError
from hw.scheduler.graph.graph import Graph, TensorKind
from hw.scheduler.plan.plan import (
    Certificate,
    Direction,
    Episode,
    GroupFifo,
    Mode,
    Plan,
    PlanStep,
    StageCertificate,
    Stream,
    Totals,
    Transfer,
)
from hw.scheduler.plan.problem import Problem

MACS_PER_CYCLE = 4096


def naive_plan(
    graph: Graph,
    scratchpad_bytes: int,
    *,
    word_bytes: int = 32,
    streams: Collection[tuple[str, str]] = (),
    order: Collection[str] | None = None,
) -> Plan:
    """Plan a graph.

    Parameters
    ----------
    graph : Graph
    scratchpad_bytes, word_bytes : int
    streams : collection of (str, str)
        Operator and tensor of each use, or making, that goes through a window.
    order : collection of str
        Names of the operators in order; the graph's own order without it.

    Raises
    ------
    InputError
        When an operator does not fit.
    """
    problem = Problem(graph=graph, word_bytes=word_bytes)
    numbers = {operator.name: number for number, operator in enumerate(graph.operators)}
    chosen = [numbers[name] for name in order] if order is not None else list(numbers.values())
    walk = _Walk(problem=problem, order=chosen, capacity=scratchpad_bytes // word_bytes)
    through = {(numbers[operator], walk.index[tensor]) for operator, tensor in streams}
    for step in range(len(chosen)):
        walk.execute(step, through)
    return _assemble(walk, scratchpad_bytes)


@dataclass
class _Stay:
    tensor: int
    address: int
    first: int
    last: int


@dataclass
class _Walk:
    """The state of a walk through the steps; sizes and addresses in words."""

    problem: Problem
    order: list[int]
    capacity: int
    stays: list[_Stay] = field(default_factory=list)
    streams: list[tuple[int, Direction, int, int, int]] = field(default_factory=list)
    fifos: list[tuple[int, int, int]] = field(default_factory=list)
    live: dict[int, _Stay] = field(default_factory=dict)

    def __post_init__(self) -> None:
        step_of = {operator: step for step, operator in enumerate(self.order)}
        self.index = {tensor.name: number for number, tensor in enumerate(self.problem.graph.tensors)}
        self.uses = [sorted(step_of[user] for user in users) for users in self.problem.consumers]
        self.made = [step_of.get(maker, -1) for maker in self.problem.producer]

    def next_use(self, tensor: int, step: int) -> int:
        return min((use for use in self.uses[tensor] if use > step), default=len(self.order))

    def execute(self, step: int, through: set[tuple[int, int]]) -> None:
        """Fetch the step's operands, record its streams, drop tensors without a further use."""
        operator, problem = self.order[step], self.problem
        operands = [*problem.inputs[operator], *problem.outputs[operator]]
        passing = [tensor for tensor in operands if (operator, tensor) in through]
        whole = [tensor for tensor in operands if tensor not in passing]
        for tensor in passing:
            self.live.pop(tensor, None)
        windows = [problem.window(operator, tensor) for tensor in passing]
        places = self._make_room(step, whole, [*windows, problem.fifo[operator]])
        for tensor, window, address in zip(passing, windows, places, strict=False):
            direction = Direction.WRITE if self.made[tensor] == step else Direction.READ
            self.streams.append((tensor, direction, step, address, window))
        if problem.fifo[operator]:
            self.fifos.append((step, places[-1], problem.fifo[operator]))
        for tensor in whole:
            self.live[tensor].last = step
        for tensor in list(self.live):
            if self.next_use(tensor, step) == len(self.order):
                del self.live[tensor]

    def _make_room(self, step: int, whole: list[int], temporary: list[int]) -> list[int]:
        """Place the missing operands; return the addresses of the temporary blocks."""
        while True:
            missing = [tensor for tensor in whole if tensor not in self.live]
            sizes = [*temporary, *(self.problem.size[tensor] for tensor in missing)]
            places = self._fit(sizes)
            if places is not None:
                for tensor, address in zip(missing, places[len(temporary) :], strict=True):
                    stay = _Stay(tensor, address, step, step)
                    self.stays.append(stay)
                    self.live[tensor] = stay
                return places[: len(temporary)]
            others = [tensor for tensor in self.live if tensor not in whole]
            # Operands are evicted last: they return at once, at another address.
            victims = others or list(self.live)
            if not victims:
                name = self.problem.graph.operators[self.order[step]].name
                raise InputError("scratchpad", self.capacity, f"at least {sum(sizes)} words for {name!r}")
            del self.live[max(victims, key=lambda tensor: (self.next_use(tensor, step), tensor))]

    def _fit(self, sizes: list[int]) -> list[int] | None:
        taken = sorted(
            (stay.address, stay.address + self.problem.size[stay.tensor]) for stay in self.live.values()
        )
        places = []
        for size in sizes:
            address = 0
            for low, high in taken:
                if low - address >= size:
                    break
                address = max(address, high)
            if address + size > self.capacity:
                return None
            if size:
                taken = sorted([*taken, (address, address + size)])
            places.append(address)
        return places


def serial_cycles(problem: Problem, steps: Collection[PlanStep]) -> int:
    """Return cycles in which all operators surely run one after the other, a word at a time."""
    words = sum(problem.size[tensor] for operands in problem.operands for tensor in operands)
    inner = [tensor for operator in problem.graph.operators for tensor in operator.inner]
    words += 2 * sum(problem.words(tensor.size_bytes) for tensor in inner)
    return words + sum(15 + step.compute_cycles for step in steps) + 3


def _assemble(walk: _Walk, scratchpad_bytes: int) -> Plan:
    problem, graph, word = walk.problem, walk.problem.graph, walk.problem.word_bytes
    names = [tensor.name for tensor in graph.tensors]
    sizes = [size * word for size in problem.size]
    episodes = tuple(
        Episode(
            tensor=names[stay.tensor],
            address=stay.address * word,
            size_bytes=sizes[stay.tensor],
            first_step=stay.first,
            last_step=stay.last,
        )
        for stay in walk.stays
    )
    streams = tuple(
        Stream(
            tensor=names[tensor],
            direction=direction,
            step=step,
            address=address * word,
            window_bytes=window * word,
        )
        for tensor, direction, step, address, window in walk.streams
    )
    transfers, homes = _transfers(walk, episodes, streams)
    reads = sum(transfer.size_bytes for transfer in transfers if transfer.direction is Direction.READ)
    writes = sum(transfer.size_bytes for transfer in transfers if transfer.direction is Direction.WRITE)
    used = [problem.fifo[operator] * word for operator in walk.order]
    for episode in episodes:
        for step in range(episode.first_step, episode.last_step + 1):
            used[step] += episode.size_bytes
    for stream in streams:
        used[stream.step] += stream.window_bytes
    steps = tuple(
        PlanStep(
            operator=graph.operators[operator].name,
            mode=Mode.PIPELINED if graph.operators[operator].members else Mode.SEQUENTIAL,
            compute_cycles=-(-graph.operators[operator].macs // MACS_PER_CYCLE),
        )
        for operator in walk.order
    )
    exposed = (reads + writes) // word
    avoidable = reads + writes - problem.compulsory * word
    return Plan(
        graph=graph,
        scratchpad_bytes=scratchpad_bytes,
        word_bytes=word,
        steps=steps,
        episodes=episodes,
        streams=streams,
        fifos=tuple(
            GroupFifo(step=step, address=address * word, size_bytes=size * word)
            for step, address, size in walk.fifos
        ),
        transfers=transfers,
        homes=homes,
        memory_bytes=max((homes[name] + sizes[walk.index[name]] for name in homes), default=0),
        totals=Totals(
            offchip_read_bytes=reads,
            offchip_write_bytes=writes,
            compulsory_bytes=problem.compulsory * word,
            avoidable_bytes=avoidable,
            parameter_bytes=sum(operator.weight_bytes for operator in graph.operators),
            peak_bytes=max(used),
            transfers_total=len(transfers),
            predicted_cycles=serial_cycles(problem, steps) + exposed,
            exposed_cycles=exposed,
        ),
        certificate=Certificate(
            claim="bound 0 bytes, not proven",
            bound_avoidable_bytes=0,
            order_bound_avoidable_bytes=0,
            stages=(
                StageCertificate(
                    stage="residency", solver="first-fit", status="heuristic", objective=avoidable, bound=0
                ),
            ),
        ),
        options={"scratchpad_bytes": scratchpad_bytes, "word_bytes": word, "macs_per_cycle": MACS_PER_CYCLE},
    )


def _transfers(
    walk: _Walk, episodes: tuple[Episode, ...], streams: tuple[Stream, ...]
) -> tuple[tuple[Transfer, ...], dict[str, int]]:
    """Return every transfer of the episodes and streams, in the order of the queues, and the homes."""
    graph = walk.problem.graph
    size = {name: walk.problem.size[number] * walk.problem.word_bytes for name, number in walk.index.items()}
    made = {name: walk.made[number] for name, number in walk.index.items()}
    read_episodes = [number for number, stay in enumerate(episodes) if stay.first_step != made[stay.tensor]]
    off_chip = {episodes[number].tensor for number in read_episodes} | {stream.tensor for stream in streams}
    off_chip |= {tensor.name for tensor in graph.tensors if tensor.kind is TensorKind.OUTPUT}
    homes, end = {}, 0
    for tensor in graph.tensors:
        if tensor.name in off_chip:
            homes[tensor.name] = end
            end += size[tensor.name]

    def moved(
        direction: Direction,
        start: int,
        deadline: int,
        *,
        episode: int | None = None,
        stream: int | None = None,
    ) -> Transfer:
        target = streams[stream] if stream is not None else episodes[episode or 0]
        return Transfer(
            tensor=target.tensor,
            direction=direction,
            episode=episode,
            stream=stream,
            size_bytes=size[target.tensor],
            dram_address=homes[target.tensor],
            scratchpad_address=target.address,
            start_step=start,
            deadline_step=deadline,
        )

    reads, writes = [], []
    for number in read_episodes:
        first = episodes[number].first_step
        reads.append(moved(Direction.READ, first, first, episode=number))
    for number, episode in enumerate(episodes):
        if episode.first_step == made[episode.tensor] and episode.tensor in off_chip:
            writes.append(moved(Direction.WRITE, episode.first_step, episode.last_step + 1, episode=number))
    for number, stream in enumerate(streams):
        queue = reads if stream.direction is Direction.READ else writes
        queue.append(moved(stream.direction, stream.step, stream.step + 1, stream=number))
    # Streams of a step come after the reads it waits for, and before the writes that wait for it.
    reads.sort(key=lambda transfer: (transfer.start_step, transfer.deadline_step))
    writes.sort(key=lambda transfer: (transfer.start_step, transfer.stream is None, transfer.deadline_step))
    return (*reads, *writes), homes
