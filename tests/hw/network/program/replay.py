"""Replays a program on bytes: transfers run as early, or as late, as its steps allow."""

import numpy as np

from sim.golden.program import execute

WORD = 64


def replay(program, region, *, reads_late, writes_late):
    """Execute a program on a region of the memory, in place.

    A transfer that runs late runs when a step waits for it, or at the program's end.
    """
    memory = region.reshape(-1, WORD)
    granules = np.full((program.scratchpad_bytes // 16, 16), 85, np.int8)
    scratchpad = granules.view(np.uint8).reshape(-1, WORD)
    done = {"reads": 0, "writes": 0}

    def run(direction, count):
        for transfer in getattr(program, direction)[done[direction] : count]:
            home = slice(transfer.dram_address, transfer.dram_address + transfer.words)
            place = slice(transfer.address, transfer.address + transfer.words)
            if direction == "reads":
                scratchpad[place] = memory[home]
            else:
                memory[home] = scratchpad[place]
        done[direction] = max(done[direction], count)

    def allowed(direction, number):
        """Return how many transfers, from the front of their list, may run by step ``number``."""
        later = (n for n, each in enumerate(getattr(program, direction)) if each.start_step > number)
        return next(later, len(getattr(program, direction)))

    for number, step in enumerate(program.steps):
        assert step.wait_writes <= allowed("writes", number - 1)
        run("writes", step.wait_writes)
        assert step.wait_reads <= allowed("reads", number)
        run("reads", step.wait_reads if reads_late else allowed("reads", number))
        execute(step.command, program, granules)
        if not writes_late:
            run("writes", allowed("writes", number))
    run("writes", len(program.writes))
    assert done["reads"] == len(program.reads)


def region_of(program, inputs):
    """Return the region with its inputs and constants; other bytes are 170."""
    region = np.full(program.memory_words * WORD, 170, np.uint8)
    contents = {**program.contents, **inputs}
    for home in (*program.inputs, *program.constants):
        rows = home.form.stored(contents[home.value.name])[home.first_row : home.first_row + home.rows]
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
