"""Files of blocks as MiniMalloc has them, and a command that places them.

``python -m hw.scheduler.planner.minimalloc --capacity 1048576 FILE...`` prints how long each takes; files
are named on standard error and in the table by their stem.
"""

from __future__ import annotations

import argparse
import csv
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from hw.errors import InputError, LoomworkError
from hw.scheduler.planner.address.address import place
from hw.scheduler.planner.address.blocks import Block
from hw.scheduler.planner.solvers.cpsat import Worker


def read_blocks(path: Path) -> tuple[Block, ...]:
    """Read blocks: a line each of ``id,lower,upper,size``, the upper step not included.

    Raises
    ------
    InputError
        When the file is not of this form, or cannot be read.
    """
    try:
        with path.open(newline="") as file:
            rows = list(csv.DictReader(file))
    except (OSError, UnicodeDecodeError) as error:
        raise InputError("file of blocks", str(path), f"a readable file ({error})") from None
    blocks = []
    for number, row in enumerate(rows, 2):
        try:
            first, end, size = (int(row[column]) for column in ("lower", "upper", "size"))
        except (KeyError, TypeError, ValueError):
            legal = "lines of id,lower,upper,size with whole numbers, and a heading"
            raise InputError(f"line {number} of {path.name}", row, legal) from None
        blocks.append(Block(first=first, last=end - 1, size=size))
    return tuple(blocks)


def main(arguments: Sequence[str] | None = None) -> int:
    """Place the blocks of files and print a table; 1 when some were not placed, 2 on wrong input."""
    parser = argparse.ArgumentParser(
        prog="python -m hw.scheduler.planner.minimalloc", description=main.__doc__
    )
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE")
    parser.add_argument("--capacity", type=int, required=True, help="in the unit of the sizes")
    asked = parser.parse_args(arguments)
    missed = False
    print(f"{'file':<10} {'blocks':>6} {'live':>9} {'height':>9} {'status':<10} {'seconds':>7}  by")
    with Worker() as worker:
        # What is compiled once and for all, or loaded, is not what takes time on an instance.
        place(_WARM, 5, worker=worker)
        for path in asked.files:
            try:
                blocks = read_blocks(path)
            except LoomworkError as error:
                print(error, file=sys.stderr)
                return 2
            begin = time.perf_counter()
            found = place(blocks, asked.capacity, worker=worker)
            seconds = time.perf_counter() - begin
            missed |= found.status != "placed"
            print(
                f"{path.stem:<10} {len(blocks):>6} {found.live:>9} {found.height:>9} {found.status:<10} "
                f"{seconds:>7.2f}  {found.solver}",
                flush=True,
            )
    return 1 if missed else 0


#: Blocks no greedy packing fits into 5 words.
_WARM = (
    Block(first=0, last=0, size=3),
    Block(first=0, last=1, size=2),
    Block(first=1, last=2, size=3),
    Block(first=2, last=2, size=2),
)


if __name__ == "__main__":
    sys.exit(main())
