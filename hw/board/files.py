"""Board files, and boards by name."""

from pathlib import Path

from hw.board.board import Board
from hw.board.form import read_board
from hw.errors import InputError

#: Folder of the board files: beside the packages, in a checkout and in an installed wheel.
BOARDS = Path(__file__).resolve().parents[2] / "boards"


def board_names() -> list[str]:
    """Return the names of all board files, sorted."""
    return sorted(path.stem for path in BOARDS.glob("*.yaml"))


def find_board(name: str) -> Path:
    """Return the file of a board, by name, or by its own path when ``name`` ends in ``.yaml`` or ``.yml``.

    Raises `InputError` when there is no such board or file.
    """
    if name.endswith((".yaml", ".yml")):
        path = Path(name)
        if not path.is_file():
            raise InputError("board file", name, "a file that exists")
        return path
    names = board_names()
    if name not in names:
        raise InputError("board", name, "one of " + ", ".join(names) + ", or a path to a .yaml file")
    return BOARDS / f"{name}.yaml"


def boards_with_host_memory() -> str:
    """Return the names of all boards with access to the host's memory, as errors list them."""
    return ", ".join(name for name in board_names() if load_board(name).host is not None)


def load_board(name: str) -> Board:
    """Load a board by name or path; see `find_board`.

    Raises `InputError` when there is no such board, or its file is wrong; the message then names file and
    line.
    """
    return read_board(find_board(name))
