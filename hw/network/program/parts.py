"""The first reads of a network on tokens in parts of some tokens, those of one part side by side.

The first sum then begins with the first part, while the others arrive.
"""

from __future__ import annotations

from dataclasses import replace

from hw.network.compile.tokens import SUM_PIXELS
from hw.network.program.program import NO_COUNTS, NetworkProgram, Transfer


def in_parts(program: NetworkProgram, tokens: int) -> NetworkProgram:
    """Return a program whose reads for its first step come in parts; ``tokens``: of each of these values."""
    count = program.steps[0].wait_reads
    first = program.reads[:count]
    whole = all(each.starts == NO_COUNTS and not each.others and not each.words % tokens for each in first)
    if not whole or tokens <= SUM_PIXELS:
        return program
    parts = [
        _part(each, at, min(SUM_PIXELS, tokens - at), tokens)
        for at in range(0, tokens, SUM_PIXELS)
        for each in first
    ]
    more = len(parts) - count
    steps = tuple(replace(step, wait_reads=step.wait_reads + more) for step in program.steps)
    writes = tuple(replace(each, others=each.others + more * (each.others > 0)) for each in program.writes)
    return replace(program, steps=steps, reads=(*parts, *program.reads[count:]), writes=writes)


def _part(whole: Transfer, first: int, count: int, tokens: int) -> Transfer:
    """Return the transfer of ``count`` tokens from ``first`` on, of ``tokens``."""
    words = whole.words // tokens
    moved = words * first
    gathered = whole.gathered
    if gathered is not None:
        moved = replace(gathered, rows=first).number_words
        gathered = replace(gathered, rows=count)
    return replace(
        whole,
        dram_address=whole.dram_address + moved,
        address=whole.address + words * first,
        words=words * count,
        gathered=gathered,
    )
