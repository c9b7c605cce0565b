"""Addresses of many blocks, a piece of the steps at a time.

A packing gets hard with the number of blocks, yet what is hard about a long network are a few of its steps.
So the steps are cut into pieces where little is alive, and the fullest piece is placed first.  Blocks that
reach into a later piece keep their addresses there.  A piece that does not go with them is joined with the
nearest one that is placed, and all between, and placed anew.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from hw.scheduler.planner.address.blocks import Block

#: Most blocks of a piece, where it can be cut; and blocks above which a piece is not joined with others.
PIECE_BLOCKS = 80
MOST_BLOCKS = 240

#: Places the blocks of a piece, given addresses that are fixed: None where it finds none.
Packer = Callable[[Sequence[Block], Mapping[int, int]], Sequence[int] | None]

Span = tuple[int, int]


@dataclass(frozen=True)
class Pieces:
    """A packing in the making.

    Parameters
    ----------
    blocks : sequence of Block
        In consecutive steps from 0.
    live : sequence of int
        Words needed in each step.
    pack : callable
        Places the blocks of a piece; its blocks are cut to the piece's steps, the fixed addresses go by
        index.
    most : int
        Blocks of a piece, where it can be cut.
    """

    blocks: Sequence[Block]
    live: Sequence[int]
    pack: Packer
    most: int = PIECE_BLOCKS
    addresses: dict[int, int] = field(default_factory=dict)

    def place(self) -> list[int] | None:
        """Give an address for each block, or None when a piece found none."""
        waiting = sorted(self._cut((0, len(self.live) - 1)), key=self._urgency)
        placed: list[Span] = []
        while waiting:
            span = waiting.pop(0)
            while not self._try(span, placed):
                if not placed or len(self._inside(span)) > MOST_BLOCKS:
                    return None
                near = min(placed, key=lambda other: (max(other[0] - span[1], span[0] - other[1]), other))
                span = (min(span[0], near[0]), max(span[1], near[1]))
                within = [
                    other for other in (*placed, *waiting) if span[0] <= other[0] and other[1] <= span[1]
                ]
                placed = [other for other in placed if other not in within]
                waiting = [other for other in waiting if other not in within]
            placed.append(span)
        return [self.addresses[index] for index in range(len(self.blocks))]

    def _cut(self, span: Span) -> list[Span]:
        first, last = span
        if len(self._inside(span)) <= self.most or last - first < 3:
            return [span]
        quarter = (last - first + 1) // 4
        least = min(range(first + quarter, last - quarter), key=lambda step: (self.live[step], step))
        return [*self._cut((first, least)), *self._cut((least + 1, last))]

    def _urgency(self, span: Span) -> tuple[int, int]:
        return -max(self.live[span[0] : span[1] + 1]), span[0]

    def _inside(self, span: Span) -> list[int]:
        first, last = span
        return [
            index for index, block in enumerate(self.blocks) if block.first <= last and block.last >= first
        ]

    def _try(self, span: Span, placed: Sequence[Span]) -> bool:
        first, last = span
        inside = self._inside(span)
        fixed = {}
        for number, index in enumerate(inside):
            block = self.blocks[index]
            if any(block.first <= end and block.last >= begin for begin, end in placed):
                fixed[number] = self.addresses[index]
        clipped = [
            replace(
                self.blocks[index],
                first=max(self.blocks[index].first, first) - first,
                last=min(self.blocks[index].last, last) - first,
            )
            for index in inside
        ]
        found = self.pack(clipped, fixed)
        if found is None:
            return False
        self.addresses.update(zip(inside, found, strict=True))
        return True
