"""Replays a program on bytes: transfers run as early, or as late, as its waits allow."""

import itertools

import numpy as np

from hw.network.commands import Core
from hw.network.program.accesses import accesses
from sim.golden.program import execute

WORD = 64


def replay(program, region, config, *, reads_late, writes_late, rng=None, known=None):
    """Execute a program of a kernel on a region of the memory, in place; return which bytes are specified.

    A transfer that runs late runs when a command waits for it, or at the program's end.  ``rng``: cores take
    turns as it draws, not in program order, each command whole and as its waits allow.

    Bytes of the scratchpad that nothing has written are of no value.  A transfer moves whole words, so bytes
    behind its tensor may be such ones; commands must use none.  ``known``: the region's bytes that have a
    value before, all by default.
    """
    known = np.ones(region.size, np.bool_) if known is None else known
    player = _Player(program, region, known, config, late={"reads": reads_late, "writes": writes_late})
    for step in program.steps:
        ready = player.ready()
        assert rng is not None or step.core in ready
        player.execute(step.core if rng is None else rng.choice(ready))
    player.end()
    return player.known_memory.repeat(16, axis=1).reshape(-1)


def homes_mask(program):
    """Return the mask of the region's bytes that hold an input or a constant."""
    found = np.zeros(program.memory_words * WORD, np.bool_)
    for home in (*program.inputs, *program.constants):
        found[home.address : home.address + home.size_bytes] = True
    return found


class _Player:
    def __init__(self, program, region, known, config, *, late):
        self.program, self.late = program, late
        self.memory = region.reshape(-1, WORD)
        self.granules = np.full((program.scratchpad_bytes // 16, 16), 85, np.int8)
        #: Granules that have a value: of the memory by words, and of the scratchpad.
        self.known_memory = known.reshape(-1, 4, 16).all(axis=2)
        self.known = np.zeros(len(self.granules), np.bool_)
        self.done = {"reads": 0, "writes": 0}
        self.lists = [[step for step in program.steps if step.core is core] for core in Core]
        self.finished = [0 for _ in Core]
        self.kept = {}
        self.accesses = [[accesses(step.command, program.taps, config) for step in own] for own in self.lists]
        #: Words that each core has written after each of its commands.
        self.words = [[0, *itertools.accumulate(len(each.writes) for each in own)] for own in self.accesses]
        self.early()

    def early(self):
        """Run transfers that are not late, and those that they wait for, as far as they may."""
        for direction, late in self.late.items():
            if not late:
                self.transfer(direction, self.allowed()[direction])

    def allowed(self):
        """Return how many transfers of each direction may run before the next command."""
        found, more = dict(self.done), True
        while more:
            more = False
            for direction, other in (("reads", "writes"), ("writes", "reads")):
                for transfer in getattr(self.program, direction)[found[direction] :][:1]:
                    starts = zip(self.finished, transfer.starts, strict=True)
                    if transfer.others <= found[other] and all(count >= start for count, start in starts):
                        found[direction], more = found[direction] + 1, True
        return found

    def transfer(self, direction, count):
        """Run transfers of a direction, and those that they wait for."""
        scratchpad = self.granules.view(np.uint8).reshape(-1, WORD)
        while self.done[direction] < count:
            transfer = getattr(self.program, direction)[self.done[direction]]
            self.transfer("writes" if direction == "reads" else "reads", transfer.others)
            home = slice(transfer.dram_address, transfer.dram_address + transfer.words)
            if transfer.gathered is not None:
                rows, count = transfer.gathered, transfer.words // transfer.gathered.rows
                numbers = self.memory[transfer.dram_address :].view("<i4").reshape(-1)[: rows.rows]
                home = np.add.outer(rows.table + numbers * count, np.arange(count)).reshape(-1)
            place = slice(transfer.address, transfer.address + transfer.words)
            known = self.known.reshape(-1, 4)
            if direction == "reads":
                scratchpad[place], known[place] = self.memory[home], self.known_memory[home]
            else:
                self.memory[home], self.known_memory[home] = scratchpad[place], known[place]
                # Behind the tensor's end, in its last word.
                assert known[place].reshape(-1)[:-3].all()
            self.done[direction] += 1

    def ready(self):
        """Return the cores whose next command may run whole."""
        allowed = self.allowed()
        return [
            core
            for core in Core
            if any(self.holds(step, allowed) for step in self.lists[core][self.finished[core] :][:1])
        ]

    def holds(self, step, allowed):
        """Tell whether the waits of a command hold, if transfers run as far as they may."""
        follow, held = step.follow, True
        if follow is not None:
            last = follow.first + (follow.tiles - 1) * follow.tile_step + (follow.per_tile - 1) * follow.step
            held = self.words[follow.core][self.finished[follow.core]] > last
        held &= step.wait_reads <= allowed["reads"] and step.wait_writes <= allowed["writes"]
        return held and all(count >= wait for count, wait in zip(self.finished, step.waits, strict=True))

    def execute(self, core):
        """Run a core's next command, and transfers that it waits for."""
        step = self.lists[core][self.finished[core]]
        self.transfer("writes", step.wait_writes)
        self.transfer("reads", step.wait_reads)
        found = self.accesses[core][self.finished[core]]
        used = np.concatenate([each.granules.reshape(-1) for each in found.reads])
        assert self.known[used[used >= 0]].all()
        self.known[found.writes[found.writes >= 0]] = True
        execute(step.command, self.program, self.granules, self.kept)
        self.finished[core] += 1
        self.early()

    def end(self):
        """Run all transfers that are left."""
        for direction, count in self.allowed().items():
            self.transfer(direction, count)
        assert self.done == {name: len(getattr(self.program, name)) for name in self.done}


def region_of(program, inputs):
    """Return the region with its inputs and constants; other bytes are 170."""
    region = np.full(program.memory_words * WORD, 170, np.uint8)
    contents = {**program.contents, **inputs}
    for home in (*program.inputs, *program.constants):
        elements, form = contents[home.value.name], home.form
        elements = elements if form.fold else elements.reshape(form.height, form.width, -1)
        rows = form.stored(elements)[home.first_row : home.first_row + home.rows]
        region[home.address : home.address + rows.size] = rows.reshape(-1).view(np.uint8)
    return region


def outputs_of(program, region):
    """Return the elements of each output."""
    found = {}
    for home in program.outputs:
        size = home.rows * home.form.row_granules * 16
        found.setdefault(home.value.name, []).append(region[home.address : home.address + size])
    forms = {home.value.name: home.form for home in program.outputs}
    return {name: forms[name].elements(np.concatenate(parts).view(np.int8)) for name, parts in found.items()}
