"""Tables and files on the terminal."""

from collections.abc import Iterable, Sequence
from pathlib import Path

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from hw.board import Board
from hw.board.form import Fact
from sim.host.plain import plain

#: Columns when the output is no terminal, where nothing should be folded.
FILE_COLUMNS = 200

#: Longer words may be broken: paths, and lists without blanks.
_LONGEST_WORD = 20

#: Columns between two of a table.
_BETWEEN = 3


def console() -> Console:
    """Return a console as wide as the terminal, or wide enough for any table in a file or pipe."""
    found = Console()
    return found if found.is_terminal else Console(width=FILE_COLUMNS)


def print_table(title: str, columns: Sequence[str], rows: Iterable[Sequence[str | Text]]) -> None:
    """Print rows under a title; strings are text without markup; see `sim.host.plain.plain`.

    Texts are folded to the width of the terminal, between words; a number is not broken, however narrow it
    is.
    """
    out = console()
    cells = [[Text(plain(cell)) if isinstance(cell, str) else cell for cell in row] for row in rows]
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    needed = 0
    for number, column in enumerate(columns):
        texts = [row[number].plain for row in cells]
        whole = all(" " not in text and len(text) <= _LONGEST_WORD for text in texts)
        parts = [column, *texts] if whole else [word for text in (column, *texts) for word in text.split()]
        needed += min(_LONGEST_WORD, max(map(len, parts), default=0)) + _BETWEEN
        table.add_column(column, overflow="fold", no_wrap=whole)
    for row in cells:
        table.add_row(*row)
    if needed > out.width:
        out = Console(width=needed)
    # A table would fold its own title to its width.
    out.print(Text(plain(title), style="bold"), table, sep="\n")


def print_boards(boards: Iterable[Board]) -> None:
    """Print a line for each board."""
    rows = []
    for board in boards:
        memory = board.memory
        realistic, peak = memory.realistic_bytes_per_second / 1e9, memory.peak_bytes_per_second / 1e9
        rows.append(
            (
                board.name,
                board.title,
                f"{board.user.lut:,}",
                f"{board.user.dsp:,}",
                f"{memory.channels} x {memory.channel_bytes >> 20} MiB {memory.kind}",
                f"{realistic:.1f} of {peak:.1f} GB/s",
                f"{board.clock_mhz:g} MHz",
            )
        )
    columns = ("board", "title", "user LUT", "user DSP", "memory", "bandwidth", "clock")
    print_table("Boards", columns, rows)


def print_board(title: str, facts: Iterable[Fact]) -> None:
    """Print every number of a board beside its source, and the sources below."""
    facts = list(facts)
    sources = list(dict.fromkeys(fact.source for fact in facts))
    number = {source: str(index) for index, source in enumerate(sources, 1)}
    rows = [(fact.name, fact.value, f"[{number[fact.source]}]") for fact in facts]
    print_table(title, ("field", "value", "source"), rows)
    print_table("Sources", ("", "source"), [(f"[{number[text]}]", text) for text in sources])


def print_files(title: str, files: Sequence[Path], directory: Path, seconds: float) -> None:
    """Print files of a directory, and the time they took."""
    rows = [(str(path.relative_to(directory)), f"{path.stat().st_size:,}") for path in files]
    print_table(f"{title}: {len(rows)} files in {seconds:.1f} s", ("file", "bytes"), rows)
    console().print(Text(str(directory)), soft_wrap=True)
