"""The golden position map, and an HBM in which writes settle late and in parts."""

import random
from collections import deque

import numpy as np

from hw.oram.core.layouts import Code, Status
from sim.golden.oram.map import Command, ObliviousMap

#: Bytes that the HBM reads or writes at once.
PIECE = 32


def ones(bits):
    return (1 << bits) - 1


def golden(config, queries):
    """Return the golden map, and its operations as `operation_layout`; None in unused fields."""
    draws = [[(draw & ones(64), draw >> 64) for draw in query["draw"]] for query in queries]
    blocks = np.array(draws, np.uint64)
    permuted = {query["command"]["key"]: query["permuted"] for query in queries}
    model = ObliviousMap(
        config,
        lambda numbers: blocks[numbers],
        lambda keys: np.array([permuted[int(key)] for key in keys], np.uint64),
    )
    commands = [query["command"] for query in queries]
    outcomes = model.run(
        Command(command["code"], command["key"], bytes(config.value_bytes), bool(command["rejected"]))
        for command in commands
    )
    operations = []
    for number, (command, outcome, (fresh, *_)) in enumerate(zip(commands, outcomes, draws, strict=True)):
        kept = outcome.status == Status.HIT and command["code"] != Code.DELETE
        halves = config.items // config.label_count
        age = number - outcome.drawn
        operations.append(
            {
                **{name: command[name] for name in ("operation", "code", "key")},
                "status": outcome.status,
                "keep": kept or outcome.status == Status.INSERTED,
                "age": (age if age <= config.window else 0) if outcome.status == Status.HIT else None,
                "page": [page for page, _ in outcome.touches[halves - 1 :: halves]],
                "record": [record for _, record in outcome.touches],
                "fresh": [model.record_of(word) for word in fresh[: config.label_count]],
            }
        )
    return model, operations


def touched(config, operation):
    """Return an operation of the design in the form of `golden`."""
    operation = dict(operation)
    for name in ("page", "record"):
        valid = operation.pop(f"{name}_valid")
        operation[name] = [value if valid >> n & 1 else None for n, value in enumerate(operation[name])]
    if operation["status"] != Status.HIT:
        operation["age"] = None
    return operation


class Hbm:
    """Buckets of both tables behind the ports of the position map.

    Each piece of a read is taken at its own time between the request and the answer, and each piece of a
    write arrives at its own time; writes of one piece arrive in order.

    Parameters
    ----------
    read_cycles, write_cycles
        Maximum cycles of a read and a write; 0: at once.
    stall
        Share of cycles in which a request or a write is stalled.
    """

    def __init__(self, dut, config, *, read_cycles, write_cycles, stall=0.0, seed=0):
        self.dut, self.config = dut, config
        self.read_cycles, self.write_cycles, self.stall = read_cycles, write_cycles, stall
        self.rng = random.Random(f"hbm {seed}")
        self.arrivals = {}  # time -> pieces of writes
        self.latest = {}  # piece -> time of its last write
        self.captures = {}  # time -> pieces of reads
        self.answers = [deque(), deque()]
        self.asked, self.written = [], []  # cycles with (table, bucket), and with pieces
        self.erase()

    def delay(self, most):
        """Return the least, the most or a random delay, each equally often."""
        return self.rng.choice([0, most, self.rng.randint(0, most)])

    def read(self, now, table, number):
        self.asked.append((now, (table, number)))
        answer = bytearray(128)
        most = self.delay(self.read_cycles)
        for first in range(0, 128, PIECE):
            due = now + min(most, self.delay(most))
            self.captures.setdefault(due, []).append((answer, table, number, first))
        self.answers[table].append((now + most, answer))

    def write(self, now, table, number, beat, word, lanes):
        piece = (table, number, PIECE * beat)
        self.written.append((now, piece))
        due = max(now + self.delay(self.write_cycles), self.latest.get(piece, 0))
        self.latest[piece] = due
        self.arrivals.setdefault(due, []).append((piece, word, lanes))

    def arrive(self, now):
        for (table, number, first), word, lanes in self.arrivals.pop(now, []):
            for lane in range(PIECE):
                if lanes >> lane & 1:
                    self.content[table][number][first + lane] = word >> 8 * lane & 0xFF
        for answer, table, number, first in self.captures.pop(now, []):
            answer[first : first + PIECE] = self.content[table][number][first : first + PIECE]

    def erase(self):
        """Zero all buckets, when all writes have settled."""
        self.settle()
        self.content = [[bytearray(128) for _ in range(self.config.buckets)] for _ in range(2)]

    def settle(self):
        for now in sorted(self.arrivals):
            self.arrive(now)

    async def serve(self, ctx):
        """Run as a testbench."""
        dut, now = self.dut, 0
        sampled = [
            part
            for n in range(2)
            for part in (
                dut.request[n].valid,
                dut.request[n].payload,
                dut.write[n].valid,
                dut.write[n].payload.line,
                dut.write[n].payload.beat,
                dut.write[n].payload.data,
                dut.write[n].payload.strobe,
                dut.bucket[n].ready,
            )
        ]
        tick = ctx.tick().sample(*sampled)
        while True:
            ready = [[self.rng.random() >= self.stall for _ in range(2)] for _ in range(2)]
            offered = [bool(queue and queue[0][0] < now) for queue in self.answers]
            for n in range(2):
                ctx.set(dut.request[n].ready, ready[n][0])
                ctx.set(dut.write[n].ready, ready[n][1])
                ctx.set(dut.bucket[n].valid, offered[n])
                if offered[n]:
                    answer = int.from_bytes(self.answers[n][0][1], "little")
                    ctx.set(dut.bucket[n].payload.as_value(), answer)
            _, _, *seen = await tick
            for n in range(2):
                asks, number, writes, *beat, taken = seen[8 * n : 8 * n + 8]
                if offered[n] and taken:
                    self.answers[n].popleft()
                if asks and ready[n][0]:
                    self.read(now, n, number)
                if writes and ready[n][1]:
                    self.write(now, n, *beat)
            self.arrive(now)
            now += 1
